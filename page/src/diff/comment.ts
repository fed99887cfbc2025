// A form below a line, in which a person says something about it.

/** Opens the form below `line`, or goes to the one that is open there. `send` is called with the words. */
export function openComment(line: HTMLElement, number: number, send: (words: string) => void): void {
  const next = line.nextElementSibling;
  if (next?.matches(".comment-form")) {
    next.querySelector("textarea")?.focus();
    return;
  }
  const form = document.createElement("div");
  form.className = "comment-form";
  const area = document.createElement("textarea");
  area.rows = 2;
  area.placeholder = "What should change here?";
  area.setAttribute("aria-label", `Comment on line ${number}`);
  const close = () => {
    form.remove();
    line.focus();
  };
  const submit = () => {
    const words = area.value.trim();
    if (!words) return close();
    send(words);
    const said = document.createElement("div");
    said.className = "comment-said";
    said.setAttribute("role", "status");
    said.textContent = words;
    form.replaceWith(said);
    line.focus();
  };
  form.append(area, button("Add to next message", "primary", submit), button("Cancel", "", close));
  form.onkeydown = (event) => {
    event.stopPropagation(); // the page's own keys have no meaning while somebody writes
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
    else return;
    event.preventDefault();
  };
  line.after(form);
  area.focus();
}

function button(text: string, kind: string, onclick: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.className = kind;
  element.textContent = text;
  element.onclick = onclick;
  return element;
}
