"""Common corruptions at five severities (Hendrycks & Dietterich, ICLR 2019), for images of any size."""
