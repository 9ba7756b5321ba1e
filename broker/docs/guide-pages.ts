/** Renders the guides from Markdown to pages. */
import GithubSlugger from 'github-slugger';
import { Marked, type Tokens } from 'marked';
import { type Guide, readGuide } from '../http/guides.ts';
import { inHtml } from '../small-page.ts';
import { renderPage } from './layout.ts';

/** Returns the served address of a page's link; undefined for files of the repository that are not served. */
function served(href: string, from: string, guides: readonly Guide[]): string | undefined {
  if (/^([a-z]+:|#|\/)/.test(href)) return href;
  const { pathname, hash } = new URL(href, `file:///${from}`);
  const guide = guides.find(({ file }) => pathname === `/${file}`);
  return guide && `/docs/${guide.name}${hash}`;
}

type Heading = { depth: number; id: string; html: string };

/**
 * Renders HTML, and returns the headings in it, with the same anchors as GitHub's.
 *
 * @param from the Markdown file, to resolve its links to other guides
 */
export function renderMarkdown(
  markdown: string,
  from: string,
  guides: readonly Guide[],
): { html: string; headings: Heading[] } {
  const slugger = new GithubSlugger();
  const headings: Heading[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const html = this.parser.parseInline(tokens);
        const id = slugger.slug(this.parser.parseInline(tokens, this.parser.textRenderer));
        headings.push({ depth, id, html });
        const anchor = depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this part">#</a>`;
        return `<h${depth} id="${id}">${html}${anchor}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const to = served(href, from, guides);
        return to === undefined ? text : `<a href="${inHtml(to)}">${text}</a>`;
      },
      image: ({ href, text }: Tokens.Image) => `<img src="/docs/${inHtml(href)}" alt="${inHtml(text)}" loading="lazy">`,
      // The guides contain no HTML; if one ever does, it is escaped.
      html: ({ text }: Tokens.HTML | Tokens.Tag) => inHtml(text),
    },
  });
  return { html: inBoxes(marked.parse(markdown, { async: false })), headings };
}

/** Returns the page of a guide. */
export function guidePage(guide: Guide, guides: readonly Guide[]): string {
  const { name, title, file } = guide;
  const { html, headings } = renderMarkdown(readGuide(guide), file, guides);
  const parts = headings.filter(({ depth }) => depth === 2);
  const list = parts.map(({ id, html: words }) => `<li><a class="entry" href="#${id}">${words}</a></li>`).join('');
  return renderPage(guides, {
    path: `/docs/${name}`,
    title,
    body: `<article class="text">${html}</article>`,
    ...(parts.length > 1 && { aside: `<p class="part">On this page</p><ul role="list">${list}</ul>` }),
  });
}

/** Wraps wide tables in boxes that scroll, also with the keyboard, so that the page does not. */
const inBoxes = (html: string): string =>
  html
    .replaceAll('<table>', '<div class="scrolls" role="region" aria-label="Table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">');
