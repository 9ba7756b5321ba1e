// A request's body as a tree of names and values, or as text.
/** @typedef {import('/console/request-view/fold.js').Member} Member */
/** @typedef {import('/console/request-view/fold.js').Node} Node */
/** @typedef {import('/console/request-view/fold.js').Opened} Opened */
/** @typedef {import('/console/request-view/fold.js').PartNode} PartNode */
/** @typedef {import('/console/request-view/fold.js').TextNode} TextNode */
/** @typedef {import('/console/html.js').Children} Children */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '/console/html.js';
import { EVERYTHING, layOut, MORE, readBody } from '/console/request-view/fold.js';
import { Heading } from '/console/request-view/heading.js';
import { counted, countUnseen, fromBase64, piecesOf, sized } from '/console/request-view/text.js';
import { visibleLine } from '/console/visible.js';

const PREVIEW = 280;
/** Chunks longer than this number of characters are laid out only when they come into view. */
const FAR = 2_000;
/** Below this depth parts are no longer indented, since lines would become too narrow. */
const DEEPEST = 7;

/**
 * A box that scrolls when its content does not fit; only then it is a tab stop, to scroll by keyboard.
 *
 * @param {{ label?: string, as?: string, children: Children }} props
 */
export function Box({ label, as = 'div', children, ...more }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const mark = () => {
    const shown = box.current;
    if (shown && shown.scrollHeight > shown.clientHeight) shown.tabIndex = 0;
  };
  useLayoutEffect(mark);
  // Content that fitted when it was drawn may not fit in a narrower window, or after the style sheet is loaded.
  useLayoutEffect(() => {
    const observer = new ResizeObserver(mark);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return html`<${as} ref=${box} role=${as === 'div' ? 'region' : undefined} aria-label=${label} ...${more}>${children}<//>`;
}

/**
 * A text with its line breaks, in a box of limited height.
 *
 * @param {{ text: string, label: string, tall?: boolean }} props
 */
export function Lines({ text, label, tall = false }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  return html`<${Box} class="lines theirs ${tall ? 'tall' : ''}" label=${label}>
    ${pieces.map((piece) =>
      piece.gap !== undefined
        ? html`<span class="gap ${piece.breaks ? 'breaks' : ''}">${piece.gap}</span>`
        : html`<div class="chunk ${piece.cut ? 'cut' : ''} ${piece.text.length > FAR ? 'far' : ''}">${piece.text}</div>`,
    )}
  <//>`;
}

/**
 * The note that a text has characters which are not visible.
 *
 * @param {{ text: string }} props
 */
export function Unseen({ text }) {
  const number = useMemo(() => countUnseen(text), [text]);
  return number > 0 && html`<span class="badge" data-kind="bad">${counted(number, 'invisible character')}</span>`;
}

/** Shows that many members of the part at a path, or all of a text. @typedef {(path: string, shown: number | true) => void} Open */

/** @param {{ node: TextNode, open: Open }} props */
function Text({ node: { value, path, folded }, open }) {
  const lines = value.split('\n').length;
  const read = useMemo(() => fromBase64(value), [value]);
  if (folded)
    return html`<div class="long">
      <span class="string theirs">${visibleLine(value.slice(0, PREVIEW))}…</span>
      <button type="button" class="compact" onClick=${() => open(path, true)}>
        Show all ${counted(value.length, 'character')}
      </button>
      <${Unseen} text=${value} />
    </div>`;
  return html`<div class="long">
    ${
      lines > 1 || value.length > 2 * PREVIEW
        ? html`<${Lines} text=${value} label="Text of ${counted(lines, 'line')}" />
            <span class="quiet small">${counted(lines, 'line')}, ${counted(value.length, 'character')}</span>`
        : html`<span class="string quoted theirs">${visibleLine(value)}</span>`
    }
    <${Unseen} text=${value} />
    ${
      read !== undefined &&
      html`<div class="reading"><span class="quiet small">Decoded from base64 it reads</span>
        <${Lines} text=${read} label="Decoded text" /></div>`
    }
  </div>`;
}

/** `Show 3 members`, `Show 200 of 9,000 items`, `Show 200 more of 8,800 items`. */
const moreOf = (/** @type {PartNode['kind']} */ kind, /** @type {number} */ left, /** @type {number} */ shown) => {
  const more = shown > 0 ? ' more' : '';
  return left > MORE
    ? `Show ${MORE}${more} of ${counted(left, NOUN[kind])}`
    : `Show ${counted(left, `${more.trim()} ${NOUN[kind]}`.trim())}`;
};

const NOUN = { list: 'item', object: 'member' };

/** @param {{ node: Node, depth: number, open: Open }} props */
function Part({ node, depth, open }) {
  if (node.kind === 'text') return html`<${Text} node=${node} open=${open} />`;
  if (node.kind === 'plain')
    return html`<span class="plain-value" data-type=${typeof node.value}>${String(node.value)}</span>`;
  const { kind, path, size, members } = node;
  const left = size - members.length;
  return html`<div class="members ${depth > DEEPEST ? 'deep' : ''}">
    ${
      members.length > 0 &&
      html`<ul role="list">
        ${members.map(
          (member) => html`<li class="member ${member.value.kind}" key=${member.namePath}>
            <${Name} member=${member} list=${kind === 'list'} open=${open} />
            <${Size} node=${member.value} />
            <${Part} node=${member.value} depth=${depth + 1} open=${open} />
          </li>`,
        )}
      </ul>`
    }
    ${
      left > 0 &&
      html`<button type="button" class="compact" onClick=${() => open(path, members.length + Math.min(left, MORE))}>
        ${moreOf(kind, left, members.length)}
      </button>`
    }
  </div>`;
}

/** @param {{ node: Node }} props */
const Size = ({ node }) =>
  node.size !== undefined &&
  html`<span class="size quiet small">${node.kind === 'list' ? 'list of ' : ''}${counted(node.size, NOUN[node.kind])}</span>`;

/** @param {{ member: Member, list: boolean, open: Open }} props */
function Name({ member: { name, namePath, nameFolded }, list, open }) {
  if (list) return html`<span class="name number">${name}</span>`;
  return html`<span class="name theirs">
    ${name === '' ? html`<i>no name</i>` : visibleLine(nameFolded ? `${name.slice(0, PREVIEW)}…` : name)}
    ${
      nameFolded &&
      html`<button type="button" class="compact" onClick=${() => open(namePath, true)}>
        Show all ${counted(name.length, 'character')}
      </button>`
    }
    <${Unseen} text=${name} />
  </span>`;
}

/**
 * Downloads the exact body as a file, to read it in another program.
 *
 * @param {{ text: string }} props
 */
function Download({ text }) {
  const [url, setUrl] = useState(/** @type {string | undefined} */ (undefined));
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  return html`<a class="button plain compact" href=${url} download="request-body.json">Download</a>`;
}

const unfold = (/** @type {number} */ folds) =>
  folds === 1
    ? 'Open the folded part before you approve.'
    : `Open the ${counted(folds, 'folded part')} before you approve, or all of them together.`;

/**
 * `onSeen` receives whether every part of the body was laid out. `hash`: the hash of the request, shown beside a large body.
 *
 * @param {{ body: unknown, hash: string, onSeen: (seen: boolean) => void }} props
 */
export function Body({ body, hash, onSeen }) {
  const reader = useMemo(() => readBody(body), [body]);
  const bytes = useMemo(() => new TextEncoder().encode(JSON.stringify(body)).length, [body]);
  const [opened, setOpened] = useState(/** @type {() => Opened | typeof EVERYTHING} */ (() => new Map()));
  const [asText, setAsText] = useState(false);
  // A body that was shown completely as text counts as seen, whichever form is shown later.
  const [seenAsText, setSeenAsText] = useState(false);
  const { tree, folds } = useMemo(() => layOut(reader, opened), [reader, opened]);
  const seen = seenAsText || folds === 0;
  const heard = useRef(onSeen);
  heard.current = onSeen;
  useLayoutEffect(() => heard.current(seen), [seen]);

  /** @type {Open} */
  const open = (path, shown) =>
    setOpened((before) => (before instanceof Map ? new Map(before).set(path, shown) : before));
  const showText = (/** @type {boolean} */ wanted) => {
    setAsText(wanted);
    setSeenAsText((before) => before || wanted);
  };
  const everything = () => (reader.tooMuch ? showText(true) : setOpened(EVERYTHING));
  return html`<div class="body">
    <div class="head">
      <${Heading}>Body <span class="quiet small">${sized(bytes)}</span><//>
      ${(bytes > 10_000 || !seen) && html`<${Download} text=${reader.text} />`}
      <button type="button" class="plain compact as-text" onClick=${() => showText(!asText)}>
        ${asText ? 'As a list' : 'As JSON'}
      </button>
    </div>
    ${
      !seen &&
      html`<div class="notice folded" data-kind="wait">
        <div>
          <p><strong>Not all of it is shown.</strong> ${unfold(folds)}</p>
          <p class="small hash">${sized(bytes)}. The request’s SHA-256 is <code>${hash}</code></p>
        </div>
        <button type="button" class="show-everything" onClick=${everything}>Show everything</button>
      </div>`
    }
    ${
      asText
        ? html`<${Lines} text=${reader.text} label="The body as JSON" tall />`
        : html`<div class="tree"><${Part} node=${tree} depth=${0} open=${open} /></div>`
    }
  </div>`;
}
