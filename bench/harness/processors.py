"""The processors that runs were recorded on: their names, and the colours of their lines in plots."""
from .plots import BLUE, GREEN, GREY, ORANGE, PURPLE

PROCESSORS = {  # family, model -> name, colour
    "26, 2": ("Zen 5", GREEN), "25, 1": ("Zen 3", ORANGE), "6, 167": ("Rocket Lake", BLUE),
    "6, 85": ("Cascade Lake", PURPLE)}


def name_and_colour(family_model):
    return PROCESSORS.get(family_model, (family_model, GREY))


def short_name(family_model):
    """What the names of its files begin with."""
    name, _ = PROCESSORS.get(family_model, (f"cpu {family_model}", GREY))
    return "".join(filter(str.isalnum, name.lower()))
