"""Replaces elements by the text that readers see: exponents, icons, check marks, lines of code.

Hidden parts are dropped. Independent of generators and sections.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS, IMAGE, LOWERED, MATH, RAISED, STYLES, holds_words
from pipelines.indexing.reading.html.mathml import formula_text
from pipelines.indexing.reading.html.page_kind import prose_size
from pipelines.indexing.reading.html.tabs import LABEL
from pipelines.indexing.reading.text import LINE_BREAK
from pipelines.page.plain import styled
from pipelines.text.cleaning import clean_page
from pipelines.text.phrases import read_names, read_phrases

_NAMES, _PHRASES = read_names(__name__), read_phrases(__name__)
_DROPPED = "raydex-dropped"  # no page has such an element
_MAYBE_HIDDEN = etree.XPath(".//*[@hidden or @aria-hidden='true' or @style]")
_CLASSED = etree.XPath(".//*[@class]")
_CONTROLS = etree.XPath("//@aria-controls | //@data-target | //@data-bs-target | //@aria-labelledby | //label/@for")
_LINKS = etree.XPath("//a[starts-with(@href, '#')]/@href")
_TEX = etree.XPath(".//*[local-name()='annotation'][@encoding='application/x-tex']")
_NAMED = etree.XPath("string((@aria-label | *[local-name()='title'] | @title)[1])")
_HOLDS_LINK = etree.XPath("boolean(.//a[@href])")
_LINES = etree.XPath(".//*[self::div or self::span][contains(concat(' ', @class, ' '), ' line ')]")
_NEAR = 20  # elements after an image that may repeat its words
# A hidden element with more than this share of a page's text may be the page itself, which a script reveals. A page
# has no more characters than these next to itself, unless the hidden element is something else, like help for a search.
_MOST, _SLOGAN = 0.5, 40
_EXPONENT = re.compile(r"[-+−–]?[\w.,/]*\d[\w.,/+−–-]*|[A-Za-z]|(?=.*\w)[\w+*/ −–-]*[+*/−–-][\w+*/ −–-]*")
_NAMED_BY = re.compile(r"[#.][\w-]+")  # a class or an id in a selector
_WORD = re.compile(r"[\w-]+")
_STYLES = etree.XPath("//style[not(@media or ancestor::noscript)]")
_HANDLERS = etree.XPath(
    "//@*[starts-with(name(), 'on')] | //a/@href[starts-with(., 'javascript:')]", smart_strings=False
)
_STOPS = tuple(".,;:!?)…。，、；：！？）،؛؟۔।")
_SHORT = 12  # characters of a superscript or subscript


def show_controls(main: Element, names: frozenset[str]) -> None:
    """Drop hidden parts of a page's content, and keep the text of its buttons, check boxes and icons.

    `names` is the result of `names_of` for the page.
    """
    _drop_hidden(main, names)
    _show_questions(main)
    _show_boxes(main)
    _show_icons(main, names)


def show(main: Element, names: frozenset[str]) -> None:
    """Replace elements of a page's content by their visible text: code, quotes, exponents, images, formulas."""
    _show_listings(main, names)
    _show_quotes(main)
    _show_scripts(main)
    _replace(main)


def drop(root: Element, elements: Iterable[Element]) -> None:
    """Remove `elements` from `root`, but keep the text after each."""
    doomed = list(elements)
    for element in doomed:
        element.tag = _DROPPED
    if doomed:  # stripping scans the whole tree, even for a single element
        etree.strip_elements(root, _DROPPED, with_tail=False)


# ---------------------------------------------------------------------------------------------- hidden parts


def _drop_hidden(main: Element, names: frozenset[str]) -> None:
    """Drop hidden elements, except those that a control on the page opens and those with most of the page's text."""
    hidden = [element for element in _MAYBE_HIDDEN(main) if _is_hidden(element)]
    hidden += _hidden_by_styles(main)
    if not _NAMES["hidden"].isdisjoint(names):
        hidden += [element for element in _CLASSED(main) if _hides(_classes(element))]
    if not hidden:
        return
    opened = frozenset(" ".join((*_CONTROLS(main), *_LINKS(main))).replace("#", "").split())
    doomed = [element for element in hidden if not _opens(element, opened)]
    size = prose_size(main)
    drop(main, [element for element in doomed if not size or not _is_page(element, main, size)])


def _hidden_by_styles(main: Element) -> list[Element]:
    """Return the elements that the page's own styles hide, except those that a script or another rule may show."""
    root = main.getroottree().getroot()
    hiding, showing = _names_in_styles("".join("".join(style.itertext()) for style in _STYLES(root)))
    if not hiding:
        return []
    scripts = chain(("".join(one.itertext()) for one in root.iter("script")), _HANDLERS(root))
    words = frozenset(_WORD.findall(" ".join(scripts)))

    def is_hidden(element: Element) -> bool:
        names = {f".{name}" for name in _classes(element)} | {f"#{name}" for name in (element.get("id") or "").split()}
        if hiding.isdisjoint(names) or not showing.isdisjoint(names) or _shows(element.get("style") or ""):
            return False
        return not any(map(words.issuperset, map(_WORD.findall, names)))

    return [element for element in main.iterdescendants(etree.Element) if is_hidden(element)]


def _names_in_styles(sheet: str) -> tuple[set[str], set[str]]:
    """Return the classes (`.a`) and ids (`#b`) that a rule hides, and those in the selectors of rules that may show.

    A rule hides if it applies to one class or id, on all screens. A rule may show elements in any state (`.a:hover .b`)
    and on some screens.
    """
    hiding, showing = set[str](), set[str]()
    if "none" not in sheet and "hidden" not in sheet:
        return hiding, showing
    for around, selectors, declarations in _rules(sheet):
        if not around and _PHRASES["hidden"].search(declarations):
            hiding.update(name for one in selectors.split(",") if _NAMED_BY.fullmatch(name := one.strip()))
        if _shows(declarations) and not _PHRASES["printed"].fullmatch(around):
            showing.update(_NAMED_BY.findall(f"{around} {selectors}"))
    return hiding, showing


def _shows(declarations: str) -> bool:
    return bool(_PHRASES["shown"].search(declarations))


def _rules(sheet: str) -> Iterator[tuple[str, str, str]]:
    """Yield the groups around each rule (`@media print`), its selectors and its declarations."""
    first, *rest = sheet.split("/*")
    parts = re.split(r"([{}])", "".join([first, *(part.partition("*/")[2] for part in rest)]))
    open_blocks: list[str] = []
    for text, sign in zip(parts[::2], parts[1::2], strict=False):
        if sign == "{":
            open_blocks.append(text.rpartition(";")[2])
        elif sign == "}" and open_blocks:
            selectors = open_blocks.pop()
            yield "".join(open_blocks), selectors, text


def _is_page(element: Element, main: Element, size: float) -> bool:
    """Return whether a hidden element is the page itself: it has headings and most of the text, or all of the text."""
    own = prose_size(element)
    if own <= _MOST * size:
        return False
    headed = any(next(one.iterancestors("noscript"), None) is None for one in element.iter(*HEADINGS))
    return headed or size - own < _SLOGAN or next(main.iter(*HEADINGS), None) is None


def _is_hidden(element: Element) -> bool:
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    if element.get("aria-hidden") == "true" and next(element.iterancestors("pre"), None) is None:
        return not (_says_state(element) or _is_label(element))
    style = element.get("style")
    return bool(style and _PHRASES["hiding"].search(style))


def _is_label(element: Element) -> bool:
    """Return whether the words of `element` are the accessible label of a box around it."""
    words = " ".join(_text(element).split())
    return bool(words) and any(words == one.get("aria-label") for one in islice(element.iterancestors(), 3))


def _hides(names: list[str]) -> bool:
    return not _NAMES["hidden"].isdisjoint(names) and not any(map(_PHRASES["showing"].fullmatch, names))


def _opens(element: Element, opened: frozenset[str]) -> bool:
    """Return whether a click reveals `element`: it is a panel, a control references it, or it follows a control."""
    around = [element, *islice(element.iterancestors(), 4)]
    if element.tag in ("td", "th", "tr", "body", "main", "article"):
        return True
    if any(one.get(LABEL) or one.get("role") == "tabpanel" or one.tag == "details" for one in around):
        return True
    if element.get("id") in opened:
        return True
    before = _before_panels(element)
    if element.tag not in ("div", "section", "ul", "ol", "dd", "p", "table", "tr") or before is None:
        return False
    if not _NAMES["opened"].isdisjoint(_parts_of(element)):
        return True
    return any(_is_control(one) for one in islice(before.iter(), _NEAR))


def _before_panels(element: Element) -> Element | None:
    """Return the element before a panel and the panels next to it, which have its class."""
    names = element.get("class")
    before = islice(element.itersiblings(preceding=True), _NEAR)
    return next((one for one in before if not names or one.get("class") != names), None)


def _is_control(element: Element) -> bool:
    href = element.get("href") or ""
    return (
        element.tag in ("button", "summary")
        or element.get("aria-expanded") is not None
        or element.get("role") == "button"
        or (element.tag == "a" and (href == "#" or href.startswith("javascript:")))
    )


# ---------------------------------------------------------------------------------------------- listings


def _show_listings(main: Element, names: frozenset[str]) -> None:
    """Turn code in elements other than `<pre>` into listings with lines, and drop line numbers."""
    for table in [] if names.isdisjoint(_NAMES["code_cells"]) else list(main.iter("table")):
        cells = [cell for cell in table.iter("td") if not _NAMES["code_cells"].isdisjoint(_classes(cell))]
        if cells and next(table.iter("pre", "th"), None) is None:
            _become_listing(table, "\n".join(_lines_of(cell) for cell in cells))
    for items in [] if names.isdisjoint(_NAMES["code_lists"]) else list(main.iter("ol")):
        holder = items.getparent()
        if holder is not None and not _NAMES["code_lists"].isdisjoint((*_classes(items), *_classes(holder))):
            _become_listing(items, "\n".join(map(_text, items.iter("li"))))
    for element in main.iter("div", "p", "span"):
        if (
            "white-space" in (style := element.get("style") or "")
            and _PHRASES["kept"].search(style)
            and ("\n" in _text(element).strip() and next(element.iter("pre", "p"), None) is None)
        ):
            element.tag = "pre"
    for code in main.iter("code"):
        if (code.find("br") is not None or code.find("div") is not None) and _fills_block(code):
            for line in code.iterchildren("div"):
                line.tail = "\n"
            code.tag = "pre"
    numbered = not names.isdisjoint(_NAMES["numbers"])
    changed = not names.isdisjoint(_NAMES["lines"]) and not names.isdisjoint(_NAMES["removed"] | _NAMES["added"])
    for pre in main.iter("pre") if numbered or changed else ():
        if len(pre):
            _show_lines(pre)


def _fills_block(code: Element) -> bool:
    holder = code.getparent()
    return (
        holder is not None and holder.tag in ("p", "div", "td", "dd", "li") and len(holder) == 1
        and not (holder.text or "").strip() and not (code.tail or "").strip() and len(list(code.iter("br", "div"))) > 1
    )  # fmt: skip


def _show_lines(pre: Element) -> None:
    """Drop line numbers, and mark removed and added lines."""
    doomed = [
        one
        for one in pre.iterdescendants()
        if not _NAMES["numbers"].isdisjoint(_classes(one)) and not any(map(str.isalpha, _text(one)))
    ]
    drop(pre, doomed)
    changed = {one: sign for one in pre.iterdescendants("div", "span") if (sign := _change(_classes(one)))}
    lines = [one for one in pre.iterdescendants("div", "span") if not _NAMES["lines"].isdisjoint(_classes(one))]
    if changed.keys() & set(lines):
        for line in lines:
            line.text = changed.get(line, " ") + (line.text or "")


def _change(names: list[str]) -> str:
    if not _NAMES["removed"].isdisjoint(names):
        return "-"
    return "" if _NAMES["added"].isdisjoint(names) else "+"


def _become_listing(element: Element, text: str) -> None:
    tail = element.tail
    names = element.get("class")
    element.clear()
    element.tag, element.text, element.tail = "pre", text, tail
    if names:
        element.set("class", names)


def _lines_of(cell: Element) -> str:
    lines = _LINES(cell)
    return "\n".join(map(_text, lines)) if lines else _text(cell).strip("\n")


# ---------------------------------------------------------------------------------------------- icons and boxes


def _show_questions(main: Element) -> None:
    """Turn each button that opens the text after it into a paragraph: it is the question that the text answers."""
    for button in list(main.iter("button")):
        holder = button.getparent()
        is_title = holder is not None and holder.tag in HEADINGS
        following = button.getnext()
        if following is None and holder is not None and len(holder) == 1:
            following = holder.getnext()
        opens = button.get("aria-expanded") is not None or not _NAMES["opened"].isdisjoint(_parts_of(button))
        if _is_in_sentence(button):
            button.tag = "span"
        if opens and not is_title and following is not None and _text(button).strip() and holds_words(following):
            button.tag = "p"


def _is_in_sentence(button: Element) -> bool:
    """Return whether a button is a word of a sentence: the sentence continues or stops after it ("Click [Save].")."""
    holder = button.getparent()
    if holder is None or holder.tag not in ("p", "li", "dd"):
        return False
    after = (button.tail or "").strip()
    continues = after.startswith(_STOPS) or any(map(str.isalpha, after))
    return continues and any(map(str.isalpha, _text_before(button)))


def _parts_of(element: Element) -> list[str]:
    """Return the words in an element's class names."""
    return re.split(r"[\s_-]", (element.get("class") or "").lower())


def _show_boxes(main: Element) -> None:
    """Show whether a check box in a list or table is checked, or a task is done; form fields are not shown."""
    for item in main.iter("li"):
        state = item.get("aria-checked") or item.get("data-checked")
        if item.get("data-inline-task-id"):
            state = "true" if "checked" in _classes(item) else "false"
        if state in ("true", "false"):
            first = item[0] if len(item) and item[0].tag == "p" and not (item.text or "").strip() else item
            first.text = f"{'[x]' if state == 'true' else '[ ]'} {(first.text or '').lstrip()}"
    for box in main.iter("input"):
        if (
            box.get("type") == "checkbox"
            and next(box.iterancestors("li", "td"), None) is not None
            and (box.get("disabled") is not None or not _NAMES["tasks"].isdisjoint(_classes(box)))
        ):
            box.tag, box.text = "span", "[x]" if box.get("checked") is not None else "[ ]"
            box.tail = f" {(box.tail or '').lstrip()}"


def _show_icons(main: Element, names: frozenset[str]) -> None:
    """Replace icons by their names, and drop the ligature words that only an icon font renders."""
    doomed: list[Element] = []
    has_ligatures = any(map(_PHRASES["ligatures"].match, names))
    for element in main.iter("mat-icon"):
        element.text = ""
    for element in list(main.iter("i", "span", "em", "b", "abbr", "mat-icon", "svg")):
        if has_ligatures and any(map(_PHRASES["ligatures"].match, _classes(element))):
            element.text = ""
        if element.tag == "svg" or _is_icon(element):
            name = _name_of(element)
            if name and not _is_decoration(element):
                element[:] = []
                element.tag, element.text = IMAGE, name
                element.attrib.clear()
            elif element.tag == "svg":
                doomed.append(element)
    drop(main, doomed)
    for cell in main.iter("td"):
        if len(cell) and not holds_words(cell) and next(cell.iter("img", IMAGE), None) is None:
            cell.text = next(filter(None, (_state(_classes(icon)) for icon in cell.iter())), "")


def _is_icon(element: Element) -> bool:
    """Return whether an element is empty or contains only an icon."""
    if (element.text or "").strip() or len(element) > 1:
        return False
    return not len(element) or (element.tag == "abbr" and not holds_words(element))


def _name_of(element: Element) -> str:
    """Return the name of an icon, "" if it has none or is hidden from screen readers."""
    if element.get("aria-hidden") == "true":
        return ""
    return " ".join(clean_page(str(_NAMED(element))).split())


def _is_decoration(element: Element) -> bool:
    """Return whether an icon is only decoration: in a link or heading with words, or in a listing."""
    holder = next(element.iterancestors("a", "pre", "button", *HEADINGS), None)
    return holder is not None and (holder.tag == "pre" or holds_words(holder))


def _says_state(element: Element) -> bool:
    """Return whether an icon without words is the only content of its cell."""
    cell = next(element.iterancestors("td"), None)
    if cell is None or not _state(_classes(element)) or next(islice(cell.iter(), _NEAR, None), None) is not None:
        return False
    return not holds_words(cell)


def _state(names: Iterable[str]) -> str:
    """Return a check mark or a cross, according to the last words of an icon's class names."""
    words = {name.rpartition("-")[2] for name in names if "-" in name}
    return "✗" if words & _NAMES["crosses"] else "✓" if words & _NAMES["ticks"] else ""


# ---------------------------------------------------------------------------------------------- quotes and scripts


def _show_quotes(main: Element) -> None:
    """Write the quotation marks that browsers add."""
    for quote in main.iter("q"):
        quote.text = f"“{quote.text or ''}"
        last = quote[-1] if len(quote) else None
        if last is None:
            quote.text += "”"
        else:
            last.tail = f"{last.tail or ''}”"


def _show_scripts(main: Element) -> None:
    """Distinguish superscripts and subscripts from footnote marks and ordinals, and drop ruby annotations."""
    drop(main, list(main.iter("rt", "rp", "rtc")))
    for element in list(main.iter("sup", "sub")):
        text = _text(element).strip()
        before = _text_before(element)
        if element.tag == "sup" and (note := _note_inside(element)) is not None:
            element.text = f" [{' '.join((element.text or '').split())}: {' '.join(_text(note).split())}]"
            element.tag, element[:] = "span", []
        elif element.tag == "sup" and _is_note(element):
            element.text, element[:] = (f" [{' '.join(text.split()).strip('[]')}]" if text else ""), []
        elif not text or len(text) > _SHORT or not (before[-1:].isalnum() or before[-1:] in ")]}"):
            continue
        elif element.tag == "sup" and _EXPONENT.fullmatch(text) and element.find(".//a") is None:
            element.tag = RAISED
        elif element.tag == "sub" and text.isalnum() and not text.isdigit() and before[-1:].isalpha():
            element.tag = LOWERED
    for pre in main.iter("pre"):  # listings have no styles
        for script in pre.iter(RAISED, LOWERED):
            script.text, script[:] = styled(_text(script), STYLES[script.tag]), []


def _note_inside(element: Element) -> Element | None:
    """Return the text of a footnote that is inside its mark, and shown when a reader points at the mark."""
    if not (element.text or "").strip() or len(element) != 1 or (element[0].tail or "").strip():
        return None
    return element[0] if len(_text(element[0]).strip()) > _SHORT else None


def _is_note(element: Element) -> bool:
    """Return whether a superscript is a footnote mark: it is a link, or its class says so."""
    if _HOLDS_LINK(element) or not _NAMES["marks"].isdisjoint(_classes(element)):
        return True
    holder = element.getparent()
    if holder is None or holder.tag != "a" or not (holder.get("href") or "").startswith("#"):
        return False
    alone = element.getprevious() is None and element.getnext() is None
    return alone and not (holder.text or "").strip() and not (element.tail or "").strip()


def _text_before(element: Element) -> str:
    """Return the text right before an element, within its parent."""
    before = element.getprevious()
    if before is None:
        parent = element.getparent()
        return "" if parent is None else parent.text or ""
    return before.tail or _text(before)


# ---------------------------------------------------------------------------------------------- images, formulas


def _replace(main: Element) -> None:
    """Replace images by their words, formulas by their TeX, and line breaks by a character."""
    for element in list(main.iter("br", "img", "math")):
        text = _shown(element)
        if element.tag == "br":
            element.tail = text + (element.tail or "")
            element.tag = _DROPPED
            continue
        if element.tag == "img" and not text.strip():
            element.tail, element.tag = f" {element.tail or ''}", _DROPPED
            continue
        element.tag = MATH if element.tag == "math" else IMAGE
        element[:] = []
        element.attrib.clear()
        element.text = text
    etree.strip_elements(main, _DROPPED, with_tail=False)


def _shown(element: Element) -> str:
    """Return the visible text of an element that has no text itself."""
    if element.tag == "br":
        return LINE_BREAK
    if element.tag == "img":
        words = element.get("alt") or (_is_only_content(element) and element.get("title")) or ""
        said = _letters(words)  # repeated next to an icon, or in a figure's caption
        repeated = bool(said) and said == _letters(_text_after(element))
        # docutils uses the address if no alternative text is given
        nothing = repeated or words == element.get("src") or _PHRASES["no_words"].fullmatch(words)
        return " " if nothing else f" {words} "
    notes = _TEX(element)
    return (notes[0].text if notes else None) or element.get("alttext") or formula_text(element)


def _is_only_content(element: Element) -> bool:
    parent = element.getparent()
    return parent is not None and not holds_words(parent)


def _text_after(element: Element) -> str:
    """Return the next piece of text after an element, "" if there is none nearby."""
    place: Element | None = element
    for _ in range(_NEAR):
        if place is None:
            break
        if text := (place.tail or "").strip():
            return text
        following = place.getnext()
        if text := next(filter(str.strip, islice(following.itertext(), _NEAR)), "") if following is not None else "":
            return text
        place = place.getparent() if following is None else following
    return ""


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _classes(element: Element) -> list[str]:
    names: str = element.get("class") or ""
    return names.split()


def _text(element: Element) -> str:
    return "".join(element.itertext())
