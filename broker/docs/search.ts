/** Searches the guides for sections that contain all of the words. Without a script: a form that leads to a page. */
import { type Guide, readGuide } from '../http/guides.ts';
import { inHtml } from '../small-page.ts';
import { renderMarkdown } from './guide-pages.ts';
import { renderPage } from './layout.ts';

/** A section of a guide: from one heading to the next. `text`: without its markup. */
type Section = { path: string; guide: string; heading: string; text: string };
type Indexed = Section & { folded: string; foldedHeading: string };

const MAX_WORDS = 8;
const MAX_CHARACTERS = 200;
const MAX_FOUND = 30;
/** Characters of a text that are shown before the first word. */
const BEFORE = 60;
const SHOWN = 220;

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** Returns the text of HTML that this module rendered. */
const textOf = (html: string): string =>
  html
    .replaceAll(/<\/?(?:code|strong|em|a|del)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:#(\d+)|(\w+));/g, (whole, code, name) =>
      code === undefined ? (ENTITIES[name] ?? whole) : String.fromCodePoint(Number(code)),
    )
    .replaceAll(/\s+/g, ' ')
    .trim();

const HEADING = /<h[1-3] id="([^"]*)">(.*?)<\/h[1-3]>\n/;

function sectionsOf(guide: Guide, guides: readonly Guide[]): Section[] {
  // [before, id, heading, text, id, heading, text, …]
  const parts = renderMarkdown(readGuide(guide), guide.file, guides).html.split(HEADING);
  const sections: Section[] = [];
  for (let at = 1; at + 2 < parts.length; at += 3) {
    const [id = '', heading = '', html = ''] = parts.slice(at, at + 3);
    const path = at === 1 ? `/docs/${guide.name}` : `/docs/${guide.name}#${id}`;
    const words = textOf(heading.replace(/ <a class="anchor".*/, ''));
    sections.push({ path, guide: guide.title, heading: words, text: textOf(html) });
  }
  return sections;
}

/** Returns a function that renders the results for a query, as HTML. The guides are read at the first query. */
export function makeSearch(guides: readonly Guide[]): (query: string) => string {
  let sections: Indexed[] | undefined;
  return (query) => {
    sections ??= guides
      .flatMap((guide) => sectionsOf(guide, guides))
      .map((one) => ({
        ...one,
        folded: `${one.guide} ${one.heading} ${one.text}`.toLowerCase(),
        foldedHeading: `${one.guide} ${one.heading}`.toLowerCase(),
      }));
    const asked = query.slice(0, MAX_CHARACTERS).trim();
    const words = [...new Set(asked.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, MAX_WORDS);
    return renderPage(guides, { path: '/docs/search', title: 'Search', query: asked, body: resultOf(sections, words) });
  };
}

function resultOf(sections: readonly Indexed[], words: readonly string[]): string {
  const found = words.length === 0 ? [] : ranked(sections, words);
  const said =
    words.length === 0
      ? 'Write one or more words: parts of the documentation that have all of them are listed.'
      : found.length === 0
        ? 'No part of the documentation has all of these words. Try fewer, or other ones.'
        : found.length > MAX_FOUND
          ? `${found.length} parts match; these are the first ${MAX_FOUND}.`
          : found.length === 1
            ? 'One part matches.'
            : `${found.length} parts match.`;
  const items = found
    .slice(0, MAX_FOUND)
    .map(
      ({ path, guide, heading, text }) =>
        `<li><a class="guide" href="${path}"><strong>${inHtml(heading)}</strong>${
          heading === guide ? '' : `<span>${inHtml(guide)}</span>`
        }<span>${excerpt(text, words)}</span></a></li>`,
    );
  return `<div class="text">
<h1>Search</h1>
<p role="status">${said}</p>
<ul role="list" class="found">${items.join('\n')}</ul>
</div>`;
}

/**
 * Returns the sections with all words: by the number of words in their heading, then by matches in all. Sections of the changelog come last, because they
 * contain nearly every word.
 */
function ranked(sections: readonly Indexed[], words: readonly string[]): Indexed[] {
  const score = ({ folded, foldedHeading }: Indexed) =>
    words.reduce(
      (sum, word) => sum + (foldedHeading.includes(word) ? 10 : 0) + Math.min(folded.split(word).length - 1, 5),
      0,
    );
  return sections
    .filter(({ folded }) => words.every((word) => folded.includes(word)))
    .map((section) => ({ section, score: score(section), isPast: section.path.startsWith('/docs/changelog') }))
    .toSorted((a, b) => Number(a.isPast) - Number(b.isPast) || b.score - a.score)
    .map(({ section }) => section);
}

/** Returns a part of a text around the first of the words, in which the words are marked; HTML. */
function excerpt(text: string, words: readonly string[]): string {
  const pattern = new RegExp(words.map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'giu');
  const first = text.search(pattern);
  const from = Math.max(0, text.lastIndexOf(' ', Math.max(0, first - BEFORE)) + 1);
  const space = text.lastIndexOf(' ', from + SHOWN);
  const end = text.length <= from + SHOWN ? text.length : space > from ? space : from + SHOWN;
  const shown = text.slice(from, end);
  let html = from > 0 ? '… ' : '';
  let at = 0;
  for (const { index, 0: word } of shown.matchAll(pattern)) {
    html += `${inHtml(shown.slice(at, index))}<mark>${inHtml(word)}</mark>`;
    at = index + word.length;
  }
  return `${html}${inHtml(shown.slice(at))}${end < text.length ? ' …' : ''}`;
}
