// A text box with a list that shrinks while one types: for choosing among hundreds of names by mouse or keyboard
// (the combobox pattern of the WAI-ARIA practices).
"use strict";
const Combobox = (() => {
  const MOST_SHOWN = 200;
  const lower = (text) => text.toLocaleLowerCase("en");

  /**
   * Makes a combobox of an <input> within an element of class "combobox".
   * options: [{ name, title, note }]; choose(index) is called when one is chosen.
   * Returns { set(index) } for choices that are made elsewhere.
   */
  function create(input, options, choose) {
    const texts = options.map(({ name, title }) => lower(`${name} ${title ?? ""}`));
    const list = document.createElement("ul");
    list.id = `${input.id}-list`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", input.labels?.[0]?.firstChild?.textContent?.trim() ?? "Choices");
    list.hidden = true;
    input.after(list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" })) {
      input.setAttribute(name, value);
    }
    input.autocomplete = "off";
    input.spellcheck = false;
    let [current, active, shown] = [-1, -1, []];

    function open(isAll) {
      const words = isAll ? [] : lower(input.value).split(/\s+/).filter(Boolean);
      const fitting = texts.flatMap((text, index) => (words.every((word) => text.includes(word)) ? [index] : []));
      shown = fitting.slice(0, MOST_SHOWN);
      list.replaceChildren(...shown.map(option));
      if (!fitting.length) list.append(remark("Nothing has these words in its name."));
      if (fitting.length > shown.length) list.append(remark(`${fitting.length - shown.length} more: type part of a name.`));
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      activate(Math.max(0, isAll ? shown.indexOf(current) : 0));
    }

    function option(index, position) {
      const item = document.createElement("li");
      item.id = `${list.id}-${position}`;
      item.setAttribute("role", "option");
      item.append(options[index].name);
      const small = document.createElement("small");
      small.textContent = [options[index].title, options[index].note].filter(Boolean).join(" · ");
      item.append(small);
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault(); // the input keeps the focus
        take(position);
      });
      return item;
    }

    function remark(words) {
      const item = document.createElement("li");
      item.setAttribute("role", "presentation");
      item.textContent = words;
      return item;
    }

    function activate(position) {
      list.querySelector("[aria-selected='true']")?.setAttribute("aria-selected", "false");
      active = position;
      const item = shown.length ? list.children[position] : null;
      item?.setAttribute("aria-selected", "true");
      item?.scrollIntoView({ block: "nearest" });
      if (item) input.setAttribute("aria-activedescendant", item.id);
      else input.removeAttribute("aria-activedescendant");
    }

    function close() {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
      input.value = options[current]?.name ?? "";
    }

    function take(position) {
      const index = shown[position];
      if (index === undefined) return;
      current = index;
      close();
      choose(index);
    }

    input.addEventListener("focus", () => input.select());
    input.addEventListener("click", () => { if (list.hidden) open(true); });
    input.addEventListener("input", () => open(false));
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
      if (step) {
        event.preventDefault();
        if (list.hidden) open(true);
        else activate(Math.min(Math.max(active + step, 0), shown.length - 1));
      } else if (event.key === "Enter" && !list.hidden) {
        event.preventDefault();
        take(active);
      } else if (event.key === "Escape") {
        close();
      }
    });
    return {
      set(index) {
        current = index;
        close();
      },
    };
  }

  return { create };
})();
