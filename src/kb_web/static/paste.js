// What was copied from Word or a web page, as Markdown.
const SKIPPED = ["STYLE", "SCRIPT", "TITLE", "META", "TEMPLATE", "O:P"];
const wrapped = (sign, words) => words.replace(/^(\s*)([^]*?)(\s*)$/, (_, before, inner, after) => (inner ? before + sign + inner + sign + after : words));
// The look that a style asks for, or the one of the element.
const isLook = (style, name, on, elements, tag) => (new RegExp(`${name}:`).test(style) ? new RegExp(`${name}:\\s*(${on})`).test(style) : elements.test(tag));
// The policy of the pages forbids styles in parsed texts too.
const withoutStyles = (html) => html.replace(/<style[^]*?<\/style>/gi, "").replace(/<[^>]*>/g, (tag) => tag.replace(/(\s)style\s*=/gi, "$1data-style="));
const inline = (node) => {
  if (node.nodeType === 3) return node.data.replace(/[\s\u00a0]+/g, " ").replace(/([\\*_`[\]])/g, "\\$1");
  if (node.nodeType !== 1 || SKIPPED.includes(node.tagName) || /mso-list:\s*Ignore/i.test(node.dataset.style || "")) return "";
  const { tagName: tag } = node;
  const style = node.dataset.style || "";
  if (tag === "BR") return "\n";
  if (tag === "CODE" || tag === "TT") return node.textContent.trim() && `\`${node.textContent}\``;
  let words = [...node.childNodes].map(inline).join("");
  if (tag === "A" && /^(https?|mailto):/.test(node.getAttribute("href") || "") && words.trim()) return `[${words.trim()}](${node.getAttribute("href").replace(/[()\s]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)})`;
  if (tag === "IMG") return "";
  if (isLook(style, "font-weight", "bold|[6-9]00", /^(B|STRONG)$/, tag)) words = wrapped("**", words);
  if (isLook(style, "font-style", "italic", /^(I|EM)$/, tag)) words = wrapped("*", words);
  return /^(S|DEL|STRIKE)$/.test(tag) ? wrapped("~~", words) : words;
};
const trimmed = (words) => words.replace(/[ \t]*\n[ \t]*/g, "\n").trim();
const table = (node) => {
  const rows = [...node.rows].map((row) => [...row.cells].map((cell) => trimmed(inline(cell)).replace(/\n/g, " ").replace(/\|/g, "\\|")));
  const width = Math.max(0, ...rows.map((row) => row.length));
  const lined = rows.map((row) => `| ${Array.from({ length: width }, (_, at) => row[at] ?? "").join(" | ")} |`);
  return [lined[0], `|${" --- |".repeat(width)}`, ...lined.slice(1)].join("\n");
};
const BLOCKS = "P,DIV,H1,H2,H3,H4,H5,H6,UL,OL,LI,TABLE,PRE,BLOCKQUOTE,HR,SECTION,ARTICLE,MAIN,HEADER,FOOTER,FIGURE,DL,DT,DD";
const isBlock = (node) => node.nodeType === 1 && (node.matches(BLOCKS) || Boolean(node.querySelector(BLOCKS)));
// Word makes a list of paragraphs, each with the sign that it shows.
const ofWord = (node) => {
  const level = /mso-list:[^;]*level(\d)/i.exec(node.dataset.style || "");
  if (!level) return null;
  const sign = [...node.querySelectorAll("[data-style]")].find((each) => /mso-list:\s*Ignore/i.test(each.dataset.style));
  return "    ".repeat(level[1] - 1) + (/\d/.test(sign?.textContent) ? "1. " : "- ") + trimmed(inline(node));
};
const entries = (node, depth) =>
  [...node.children].map((each, at) => (/^(UL|OL)$/.test(each.tagName) ? entries(each, depth + 1) : `${"    ".repeat(depth)}${node.tagName === "OL" ? `${at + (node.start || 1)}.` : "-"} ${blocks(each, depth + 1).trimStart()}`)).join("\n");
const block = (node, depth) => {
  const tag = node.tagName;
  const heading = /^H([1-6])$/.exec(tag);
  if (heading) return `${"#".repeat(heading[1])} ${trimmed(inline(node)).replace(/\n/g, " ").replaceAll("**", "")}`;
  if (tag === "UL" || tag === "OL") return entries(node, depth);
  if (tag === "TABLE") return table(node);
  if (tag === "PRE") return `\`\`\`\n${node.textContent.trimEnd()}\n\`\`\``;
  if (tag === "HR") return "---";
  if (tag === "BLOCKQUOTE") return blocks(node, 0).replace(/^/gm, "> ");
  return ofWord(node) ?? blocks(node, depth);
};
const blocks = (node, depth = 0) => {
  const parts = [];
  let run = "";
  for (const each of node.childNodes) {
    if (!isBlock(each)) run += inline(each);
    else if (!SKIPPED.includes(each.tagName)) (parts.push(trimmed(run), block(each, depth)), (run = ""));
  }
  const shown = [...parts, trimmed(run)].filter((part) => part.trim());
  const isEntry = (part) => /^\s*([-*+]|\d+[.)]) /.test(part);
  return shown.reduce((before, part, at) => before + (at ? (isEntry(part) && (isEntry(shown[at - 1]) || depth) ? "\n" : "\n\n") : "") + part, "");
};
export const markdown = (html) => {
  const page = new DOMParser().parseFromString(withoutStyles(html), "text/html");
  const hasForm = page.querySelector("a[href],b,strong,i,em,h1,h2,h3,h4,h5,h6,ul,ol,table,blockquote,pre,code,[data-style*=mso-list]");
  return hasForm && !page.querySelector("[data-vscode-markdown], .vscode") ? blocks(page.body) : "";
};
