// The gallery of platforms to connect: the built-in platforms, and the connection methods of each.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {import('../../answers.ts').Platform} Platform */
import { Connect } from '/console/connections/connect.js';
import { badgeOfAll } from '/console/connections/connection-labels.js';
import { OnOwn, OwnForm } from '/console/connections/own.js';
import { describeWays } from '/console/connections/ways.js';
import { html, useEffect, useRef } from '/console/html.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 30_000;
const SLOW_INTERVAL_MS = 600_000;

export const GALLERY = '/console/connections/new';

/** The heading by kind of platform that is not built in. @type {Record<string, string>} */
const OWN = { rest: 'Connect an API of your own', mcp: 'Connect an MCP server' };

/** `?platform=github`: the built-in platform to connect. `?own=rest`, `?own=mcp`: a new platform that is not built in. `?to=crm`: an existing platform that is not built in. @param {{ place: URL }} props */
export function GalleryPage({ place }) {
  const owner = useOwner();
  const may = mayChange(owner);
  const { answer, error, reload } = useLoaded('/owner/built-in-platforms', SLOW_INTERVAL_MS);
  const platforms = useLoaded('/owner/platforms', INTERVAL_MS);
  const connections = useLoaded('/owner/connections', INTERVAL_MS);
  const wanted = place.searchParams.get('platform');
  const own = place.searchParams.get('own') ?? '';
  const to = place.searchParams.get('to');
  const step = wanted ?? to ?? own;
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const before = useRef(step);
  useEffect(() => {
    // After a step change the focus moves to the heading, so that keyboard navigation continues there.
    if (before.current !== step) heading.current?.focus();
    before.current = step;
  }, [step]);
  const all = answer?.built_in_platforms;
  const chosen = all?.find(({ builtin }) => builtin === wanted);
  const there = platforms.answer?.platforms.find(({ platform_id }) => platform_id === to);
  const title = chosen?.name ?? (there && visibleLine(there.name));
  const isOne = title !== undefined || OWN[own] !== undefined;
  const failed = error ?? (platforms.answer ? undefined : platforms.error);
  const again = () => {
    reload();
    platforms.reload();
  };
  return html`
    <div class="page-head"><div>
      <p class="small">${
        isOne
          ? html`<${Link} to=${GALLERY} id="to-gallery">All platforms<//>`
          : html`<${Link} to="/console/connections">Connections<//>`
      }</p>
      <h1 ref=${heading} tabindex="-1">${title === undefined ? (OWN[own] ?? 'Connect a platform') : `Connect ${title}`}</h1>
    </div></div>
    <div class="gallery stack">
      ${!may && html`<p class="notice" data-kind="wait">Your role is ${owner.role}: an admin connects platforms.</p>`}
      ${failed && html`<${Failed} error=${failed} again=${again} />`}
      ${(!all || !platforms.answer) && !failed && html`<${Loading} />`}
      ${
        chosen &&
        platforms.answer &&
        html`<${Connect} key=${chosen.builtin} builtIn=${chosen} platforms=${platforms.answer.platforms} changed=${platforms.reload} />`
      }
      ${there && may && html`<${OnOwn} key=${there.platform_id} platform=${there} changed=${platforms.reload} />`}
      ${!title && OWN[own] && may && platforms.answer && html`<${OwnForm} key=${own} kind=${own === 'mcp' ? 'mcp' : 'rest'} taken=${platforms.answer.platforms.map(({ platform_id }) => platform_id)} changed=${platforms.reload} />`}
      ${all && platforms.answer && !isOne && html`<${Cards} all=${all} platforms=${platforms.answer.platforms} connections=${connections.answer?.connections ?? []} /><${Others} may=${may} platforms=${platforms.answer.platforms} />`}
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
            <span class="small quiet">${describeWays(ways)}</span>
            ${badge && html`<span class="badge" data-kind=${badge.kind}>${badge.words}</span>`}
          </span>
        <//>
      </li>`;
    })}
  </ul>
`;

/** @param {{ may: boolean, platforms: readonly Platform[] }} props */
function Others({ may, platforms }) {
  const own = platforms.filter(({ builtin }) => builtin === null);
  return html`
    <section class="sheet others stack" aria-labelledby="others">
      <h2 id="others">Another API, or an MCP server</h2>
      <p class="quiet">Any REST or GraphQL API, with its OpenAPI document or by hand, and any MCP server over HTTP.</p>
      ${
        may &&
        html`<div class="buttons"><${Link} to="${GALLERY}?own=rest" class="button" id="own-rest">Connect an API<//>
        <${Link} to="${GALLERY}?own=mcp" class="button" id="own-mcp">Connect an MCP server<//></div>`
      }
      ${
        may &&
        own.length > 0 &&
        html`<ul class="small" id="own">${own.map(({ platform_id, name, connections }) => html`<li key=${platform_id}><${Link} to=${`${GALLERY}?to=${encodeURIComponent(platform_id)}`} class="theirs" data-own=${platform_id}>${visibleLine(name)}<//> <span class="quiet">(${name === platform_id ? '' : `${platform_id}, `}${connections.length === 1 ? '1 connection' : `${connections.length} connections`})</span></li>`)}</ul>`
      }
      <p class="quiet small">A <a href="/docs/governance" target="_blank" rel="noreferrer">governance file</a> does the same for several together.</p>
    </section>
  `;
}
