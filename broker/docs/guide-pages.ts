/** The guides of docs/, from Markdown to pages. They ship with the package and are read when somebody asks for one. */
import { existsSync, readFileSync } from 'node:fs';
import GithubSlugger from 'github-slugger';
import { Marked, type Tokens } from 'marked';
import { GUIDES, type Guide } from '../http/guides.ts';
import { inHtml, renderPage } from './layout.ts';

/** Beside the sources, and beside the compiled files. */
const ROOT = ['../../', '../../../']
  .map((up) => new URL(up, import.meta.url))
  .find((root) => existsSync(new URL('docs/agents.md', root)));

const fileOf = (name: string): string => (name === 'changelog' ? 'CHANGELOG.md' : `docs/${name}.md`);

/** The Markdown of a guide. Throws when it is not part of this install. */
export function readGuide(name: string): string {
  if (!ROOT) throw new Error('The guides are not part of this install.');
  return readFileSync(new URL(fileOf(name), ROOT), 'utf8');
}

/** Undefined when there is no such picture. */
export function readPicture(name: string): Buffer | undefined {
  const file = ROOT && /^[a-z-]+\.png$/.test(name) ? new URL(`docs/images/${name}`, ROOT) : undefined;
  return file && existsSync(file) ? readFileSync(file) : undefined;
}

/** Where a link of a guide leads here; undefined for files of the repository that are not served. */
function served(href: string): string | undefined {
  if (/^(https?:|#|\/)/.test(href)) return href;
  const [, page = '', anchor = ''] = /^(?:\.\.\/)?([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  const name = page.toLowerCase();
  if (href.startsWith('../') && name !== 'changelog') return undefined;
  return GUIDES.some((guide) => guide.name === name) ? `/docs/${name}${anchor}` : undefined;
}

type Heading = { depth: number; id: string; html: string };

/** HTML, and the headings in it, with the anchors that GitHub gives them. */
export function renderMarkdown(markdown: string): { html: string; headings: Heading[] } {
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
        const to = served(href);
        return to === undefined ? text : `<a href="${inHtml(to)}">${text}</a>`;
      },
      image: ({ href, text }: Tokens.Image) => `<img src="/docs/${inHtml(href)}" alt="${inHtml(text)}" loading="lazy">`,
      // The guides are Markdown alone; should there ever be HTML in one, it is shown and not obeyed.
      html: ({ text }: Tokens.HTML | Tokens.Tag) => inHtml(text),
    },
  });
  return { html: inBoxes(marked.parse(markdown, { async: false })), headings };
}

/** The page of a guide. */
export function guidePage({ name, title }: Guide): string {
  const { html, headings } = renderMarkdown(readGuide(name));
  const parts = headings.filter(({ depth }) => depth === 2);
  const list = parts.map(({ id, html: words }) => `<li><a class="entry" href="#${id}">${words}</a></li>`).join('');
  return renderPage({
    path: `/docs/${name}`,
    title,
    body: `<article class="text">${html}</article>`,
    ...(parts.length > 1 && { aside: `<p class="part">On this page</p><ul role="list">${list}</ul>` }),
  });
}

/** Wide tables scroll in a box of their own, which the keyboard reaches, and not the page. */
const inBoxes = (html: string): string =>
  html
    .replaceAll('<table>', '<div class="scrolls" role="region" aria-label="Table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">');
