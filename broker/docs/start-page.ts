/** GET /docs: the guides, and every operation of the agent API under its capability, which `_meta.docs` points at. */
import type { Guide } from '../http/guides.ts';
import { operationId } from '../http/openapi/document.ts';
import { AGENT_TAGS } from '../http/openapi/tags.ts';
import type { Auth, Route } from '../http/route.ts';
import { inHtml } from '../small-page.ts';
import { renderPage } from './layout.ts';

const WHO: Record<Auth, string> = {
  none: 'Anybody',
  agent: 'Agent',
  git: 'Agent, by Basic authentication',
  raw: 'Agent, in place of the platform’s key',
  mcp_client: 'MCP client',
  anyone: 'Anybody; an agent or an owner hears more',
  owner: 'Owner',
  agent_or_owner: 'Agent or owner',
  owner_or_local: 'Owner',
  owner_or_pipeline: 'Owner or pipeline',
  local: 'Command line',
};

/** Renders backticks of declarations as code. */
const prose = (text: string): string => inHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

function operation(route: Route): string {
  const { method, path, summary, description, auth, capability } = route;
  const reference = `/docs/reference#/${encodeURIComponent(AGENT_TAGS.of(route))}/${operationId(route)}`;
  return `<li id="${capability}" class="operation">
<p class="line"><span class="method" data-method="${method}">${method}</span> <a href="${reference}"><code>${inHtml(path)}</code></a> <a class="anchor" href="#${capability}" aria-label="Link to this operation">#</a></p>
<p>${prose(summary)}</p>
${description === undefined ? '' : `<p class="quiet small">${prose(description)}</p>\n`}<p class="quiet small">${WHO[auth]} · <code>${capability}</code></p>
</li>`;
}

/** `routes`: those of the public API. */
export function startPage(routes: readonly Route[], guides: readonly Guide[]): string {
  const cards = guides.map(
    ({ name, title, about }) =>
      `<li class="card"><a class="guide" href="/docs/${name}"><strong>${inHtml(title)}</strong><span>${prose(about)}</span></a></li>`,
  );
  const parts = AGENT_TAGS.all.flatMap(({ name, description }) => {
    const those = routes.filter((route) => AGENT_TAGS.of(route) === name);
    if (those.length === 0) return [];
    const id = name.toLowerCase().replaceAll(' ', '-');
    const operations = those.map(operation).join('\n');
    return [
      `<section aria-labelledby="${id}"><h2 id="${id}">${name}</h2><p>${prose(description)}</p><ul role="list">${operations}</ul></section>`,
    ];
  });
  const body = `<div class="text">
<h1>Agent Broker</h1>
<p>Agents name a platform, an endpoint, a method and a scope. The broker decides, holds the call for a person where it must, puts in a
credential that the agent never sees, and leaves a signed receipt. <a href="/docs/getting-started">Getting started</a> makes the first
call.</p>
<ul role="list" class="cards">${cards.join('')}</ul>
<h2 id="agent-api">Agent API</h2>
<p>Every operation under its capability, the name that answers carry in <code>_meta.capability</code>. The
<a href="/docs/reference">reference</a> has bodies, answers and examples; <a href="/v1/openapi.json">the OpenAPI document</a> has it
for programs, <a href="/llms.txt">llms.txt</a> for language models.</p>
</div>
${parts.join('\n')}`;
  return renderPage(guides, { path: '/docs', title: 'Documentation', body });
}
