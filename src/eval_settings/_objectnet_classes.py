"""The 113 classes of ObjectNet that ImageNet has, and the columns of ImageNet models that stand for each.

The rows are those of the files `folder_to_objectnet_label.json` and `objectnet_to_imagenet_1k.json` that come with the
set, the names of ImageNet's classes there as their indices.

Source: Barbu et al., ObjectNet: A large-scale bias-controlled dataset for pushing the limits of object recognition
models, NeurIPS 2019.
"""

from __future__ import annotations

# folder, the set's name of the class, columns
OBJECTNET: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("alarm_clock", "Alarm clock", (409, 530)), ("backpack", "Backpack", (414,)), ("banana", "Banana", (954,)),
    ("band_aid", "Band Aid", (419,)), ("basket", "Basket", (790,)), ("full_sized_towel", "Bath towel", (434,)),
    ("beer_bottle", "Beer bottle", (440,)), ("bench", "Bench", (703,)), ("bicycle", "Bicycle", (671, 444)),
    ("binder_closed", "Binder (closed)", (446,)), ("bottle_cap", "Bottle cap", (455,)),
    ("bread_loaf", "Bread loaf", (930,)), ("broom", "Broom", (462,)), ("bucket", "Bucket", (463,)),
    ("butchers_knife", "Butcher's knife", (499,)), ("can_opener", "Can opener", (473,)), ("candle", "Candle", (470,)),
    ("cellphone", "Cellphone", (487,)), ("chair", "Chair", (423, 559, 765)),
    ("clothes_hamper", "Clothes hamper", (588,)), ("coffee_french_press", "Coffee/French press", (550,)),
    ("combination_lock", "Combination lock", (507,)), ("computer_mouse", "Computer mouse", (673,)),
    ("desk_lamp", "Desk lamp", (846,)), ("hand_towel_or_rag", "Dishrag or hand towel", (533,)),
    ("doormat", "Doormat", (539,)), ("dress_shoe_men", "Dress shoe (men)", (630,)), ("drill", "Drill", (740,)),
    ("drinking_cup", "Drinking Cup", (968,)), ("drying_rack_for_dishes", "Drying rack for plates", (729,)),
    ("envelope", "Envelope", (549,)), ("fan", "Fan", (545,)), ("frying_pan", "Frying pan", (567,)),
    ("dress", "Dress", (578,)), ("hair_dryer", "Hair dryer", (589,)), ("hammer", "Hammer", (587,)),
    ("helmet", "Helmet", (560, 518)), ("iron_for_clothes", "Iron (for clothes)", (606,)), ("jeans", "Jeans", (608,)),
    ("keyboard", "Keyboard", (508,)), ("ladle", "Ladle", (618,)), ("lampshade", "Lampshade", (619,)),
    ("laptop_open", "Laptop (open)", (620,)), ("lemon", "Lemon", (951,)), ("letter_opener", "Letter opener", (623,)),
    ("lighter", "Lighter", (626,)), ("lipstick", "Lipstick", (629,)), ("match", "Match", (644,)),
    ("measuring_cup", "Measuring cup", (647,)), ("microwave", "Microwave", (651,)),
    ("mixing_salad_bowl", "Mixing / Salad Bowl", (659,)), ("monitor", "Monitor", (664,)), ("mug", "Mug", (504,)),
    ("nail_fastener", "Nail (fastener)", (677,)), ("necklace", "Necklace", (679,)), ("orange", "Orange", (950,)),
    ("padlock", "Padlock", (695,)), ("paintbrush", "Paintbrush", (696,)), ("paper_towel", "Paper towel", (700,)),
    ("pen", "Pen", (418, 749, 563)), ("pill_bottle", "Pill bottle", (720,)), ("pillow", "Pillow", (721,)),
    ("pitcher", "Pitcher", (725,)), ("plastic_bag", "Plastic bag", (728,)), ("plate", "Plate", (923,)),
    ("plunger", "Plunger", (731,)), ("pop_can", "Pop can", (737,)), ("portable_heater", "Portable heater", (811,)),
    ("printer", "Printer", (742,)), ("remote_control", "Remote control", (761,)), ("ruler", "Ruler", (769,)),
    ("running_shoe", "Running shoe", (770,)), ("safety_pin", "Safety pin", (772,)),
    ("salt_shaker", "Salt shaker", (773,)), ("sandal", "Sandal", (774,)), ("screw", "Screw", (783,)),
    ("shovel", "Shovel", (792,)), ("skirt", "Skirt", (601, 655, 689)), ("sleeping_bag", "Sleeping bag", (797,)),
    ("soap_dispenser", "Soap dispenser", (804,)), ("sock", "Sock", (806,)), ("soup_bowl", "Soup Bowl", (809,)),
    ("spatula", "Spatula", (813,)), ("speaker", "Speaker", (632,)), ("still_camera", "Still Camera", (732, 759)),
    ("strainer", "Strainer", (828,)), ("stuffed_animal", "Stuffed animal", (850,)),
    ("suit_jacket", "Suit jacket", (834,)), ("sunglasses", "Sunglasses", (837,)), ("sweater", "Sweater", (841,)),
    ("swimming_trunks", "Swimming trunks", (842,)), ("t-shirt", "T-shirt", (610,)), ("tv", "TV", (851,)),
    ("teapot", "Teapot", (849,)), ("tennis_racket", "Tennis racket", (752,)), ("tie", "Tie", (457, 906)),
    ("toaster", "Toaster", (859,)), ("toilet_paper_roll", "Toilet paper roll", (999,)),
    ("trash_bin", "Trash bin", (412,)), ("tray", "Tray", (868,)), ("umbrella", "Umbrella", (879,)),
    ("vacuum_cleaner", "Vacuum cleaner", (882,)), ("vase", "Vase", (883,)), ("wallet", "Wallet", (893,)),
    ("watch", "Watch", (531,)), ("water_bottle", "Water bottle", (898,)),
    ("weight_exercise", "Weight (exercise)", (543,)), ("weight_scale", "Weight scale", (778,)),
    ("wheel", "Wheel", (479, 694)), ("whistle", "Whistle", (902,)), ("wine_bottle", "Wine bottle", (907,)),
    ("winter_glove", "Winter glove", (658,)), ("wok", "Wok", (909,)),
)  # fmt: skip
