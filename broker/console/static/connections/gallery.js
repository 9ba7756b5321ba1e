// Connecting a platform: which ones the broker knows, and what each takes.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {import('../../answers.ts').Platform} Platform */
import { Connect } from '/console/connections/connect.js';
import { waysInWords } from '/console/connections/ways.js';
import { badgeOfAll } from '/console/connections/words.js';
import { html, useEffect, useRef } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 30_000;
const SELDOM_MS = 600_000;

export const GALLERY = '/console/connections/new';

/** `?platform=github`: the one that is connected. @param {{ place: URL }} props */
export function GalleryPage({ place }) {
  const owner = useOwner();
  const { answer, error, reload } = useLoaded('/owner/built-in-platforms', SELDOM_MS);
  const platforms = useLoaded('/owner/platforms', EVERY_MS);
  const connections = useLoaded('/owner/connections', EVERY_MS);
  const wanted = place.searchParams.get('platform');
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const before = useRef(wanted);
  useEffect(() => {
    // Whoever chose a platform goes on below its name, also by keyboard.
    if (before.current !== wanted) heading.current?.focus();
    before.current = wanted;
  }, [wanted]);
  const all = answer?.built_in_platforms;
  const chosen = all?.find(({ builtin }) => builtin === wanted);
  const failed = error ?? (platforms.answer ? undefined : platforms.error);
  const again = () => {
    reload();
    platforms.reload();
  };
  return html`
    <div class="page-head"><div>
      <p class="small">${
        chosen
          ? html`<${Link} to=${GALLERY} id="to-gallery">All platforms<//>`
          : html`<${Link} to="/console/connections">Connections<//>`
      }</p>
      <h1 ref=${heading} tabindex="-1">${chosen ? `Connect ${chosen.name}` : 'Connect a platform'}</h1>
    </div></div>
    <div class="gallery stack">
      ${!mayChange(owner) && html`<p class="notice" data-kind="wait">Your role is ${owner.role}: an admin connects platforms.</p>`}
      ${failed && html`<${Failed} error=${failed} again=${again} />`}
      ${(!all || !platforms.answer) && !failed && html`<${Loading} />`}
      ${
        chosen &&
        platforms.answer &&
        html`<${Connect} key=${chosen.builtin} builtIn=${chosen} platforms=${platforms.answer.platforms} changed=${platforms.reload} />`
      }
      ${all && platforms.answer && !chosen && html`<${Cards} all=${all} platforms=${platforms.answer.platforms} connections=${connections.answer?.connections ?? []} /><${Others} />`}
    </div>
  `;
}

/** @param {{ all: readonly BuiltIn[], platforms: readonly Platform[], connections: readonly Connection[] }} props */
const Cards = ({ all, platforms, connections }) => html`
  <ul role="list" class="cards" id="gallery">
    ${all.map(({ builtin, name, ways }) => {
      const own = new Set(platforms.filter((one) => one.builtin === builtin).map(({ platform_id }) => platform_id));
      const badge = badgeOfAll(connections.filter(({ platform }) => own.has(platform)));
      return html`<li key=${builtin}>
        <${Link} to=${`${GALLERY}?platform=${builtin}`} class="sheet platform" data-builtin=${builtin}>
          <span class="initial" aria-hidden="true">${name.slice(0, 1)}</span>
          <span>
            <strong>${name}</strong>
            <span class="small quiet">${waysInWords(ways)}</span>
          </span>
          ${badge && html`<span class="badge" data-kind=${badge.kind}>${badge.words}</span>`}
        <//>
      </li>`;
    })}
  </ul>
`;

const Others = () => html`
  <section class="sheet others stack" aria-labelledby="others">
    <h2 id="others">Another API, or an MCP server</h2>
    <p class="quiet">Any REST or GraphQL API and any MCP server is written down in a governance file, with its address and its scopes:</p>
    <${Command} text="npx agent-broker apply governance.yaml" />
  </section>
`;
