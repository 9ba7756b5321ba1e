/** The guides that a broker serves under /docs: the pages of docs/, which ship with the package, and the changelog. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `name`: the path below /docs, such as `clients/remote` for docs/clients/remote.md. `file`: relative to the root of the package. */
export type Guide = { name: string; title: string; about: string; file: string };

/** In reading order. Pages that are not listed come after these, sorted by their headings. */
const ABOUT: Readonly<Record<string, string>> = {
  'getting-started': 'The first call, the first real platform.',
  agents: 'Tokens, POST /v1/actions, every answer and what to do next.',
  approvals: 'Calls that wait for a person, and the page that shows them.',
  notices: 'Notices to owners about what waits for them: webhooks, ntfy, e-mail.',
  console: 'The inbox, its keys, agents and activity.',
  terminal: 'What waits and what was decided, as commands.',
  governance: 'The file, policies, guardrails, conditions.',
  platforms: 'The built-in ones, and writing your own.',
  queries: 'Queries about what an agent may do, by AuthZEN and TRQP.',
  'by-hand': 'All that an agent and its owner send, with curl and openssl alone.',
  'clients/claude-code': 'One command adds the broker to it.',
  'clients/claude-desktop': 'One command adds the broker to it.',
  'clients/cursor': 'One command adds the broker to it.',
  'clients/vscode': 'One command adds the broker to it.',
  'clients/codex': 'One command adds the broker to it.',
  'clients/gemini': 'One command adds the broker to it.',
  'clients/copilot': 'One command adds the broker to it.',
  'clients/qwen': 'One command adds the broker to it.',
  'clients/opencode': 'One command adds the broker to it.',
  'clients/zed': 'One command adds the broker to it.',
  'clients/windsurf': 'One command adds the broker to it.',
  'clients/antigravity': 'One command adds the broker to it.',
  'clients/devin': 'One command adds the broker to it.',
  'clients/kiro': 'One command adds the broker to it.',
  'clients/cline': 'One command adds the broker to it.',
  'clients/continue': 'One command adds the broker to it.',
  'clients/others': 'What most clients take, by hand.',
  'clients/remote': 'Clients that connect to /mcp over HTTP, with nothing but the address.',
  'clients/curl': 'No client at all: HTTP, and a token signed for each request.',
  'clients/waiting': 'Tasks, links, progress, and what is never lost.',
  lab: 'A small MCP server to try a client on.',
  'owner-api': 'What people and their programs do: decide, suspend, connect, audit.',
  receipts: 'What they hold, and verifying them offline.',
  operations: 'Settings, PostgreSQL and replicas, keys, backups.',
  deploy: 'Image, Compose, Helm chart, systemd, releases.',
  security: 'The guarantees, each with its test, and what is not guaranteed.',
  'threat-model': 'Assets, actors, promises, and the threats of CB4A row by row.',
  'hostile-cases': 'Attacks on the broker, by number, each with the test that performs it.',
  architecture: 'The parts of the code, and why they are so.',
  glossary: 'The terms and their meaning.',
  coverage: 'Every route and status of the specification, with the test that shows it.',
  changelog: 'The changes of each version.',
};

/** Decision records for developers: shipped with the package, but not served as guides. */
export const DECISIONS = 'decisions/';

/** The root of the package, for the sources and for the compiled files. */
const ROOT = ['../../', '../../../']
  .map((up) => new URL(up, import.meta.url))
  .find((root) => existsSync(new URL('docs/agents.md', root)));

/** Number of bytes that are enough for a guide's heading and first sentence. */
const HEAD_BYTES = 4096;

/** Reads heading and first paragraph. Only the beginning of the file: a substring of the whole text would keep all of it in memory. */
function readHead(file: string): string {
  const opened = openSync(new URL(file, ROOT), 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.toString('utf8', 0, readSync(opened, head));
  } finally {
    closeSync(opened);
  }
}

/** Lists the guides that are part of this installation. */
export function listGuides(): Guide[] {
  if (!ROOT) return [];
  const pages = readdirSync(fileURLToPath(new URL('docs/', ROOT)), { recursive: true })
    .map((file) => String(file).replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.md') && !file.startsWith(DECISIONS))
    .map((file) => ({ name: file.slice(0, -'.md'.length), file: `docs/${file}` }));
  const order = Object.keys(ABOUT);
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.indexOf('queries') + 0.5);
  return [...pages, { name: 'changelog', file: 'CHANGELOG.md' }]
    .filter(({ file }) => existsSync(new URL(file, ROOT)))
    .map(({ name, file }) => {
      const text = readHead(file);
      const [, title = name, first = ''] =
        /^# (.+)\n\n(?![-#|`<])([\s\S]+?)(?:\n\n|$)/.exec(text) ?? /^# (.+)/.exec(text) ?? [];
      return { name, file, title, about: ABOUT[name] ?? sentenceOf(first) };
    })
    .toSorted((a, b) => place(a.name) - place(b.name) || (a.name < b.name ? -1 : 1));
}

/** Returns the first sentence of a paragraph, without its markup. */
const sentenceOf = (paragraph: string): string =>
  paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)|[*_`]/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .replace(/(?<=[.:])\s.*$/, '');

/** Returns the Markdown of a guide. */
export const readGuide = ({ file }: Guide): string => readFileSync(new URL(file, ROOT), 'utf8');

/** Returns a picture of a guide by its file name; undefined when there is none. */
export function readPicture(name: string): Buffer | undefined {
  const file = ROOT && /^[\w-]+\.png$/.test(name) ? new URL(`docs/images/${name}`, ROOT) : undefined;
  return file && existsSync(file) ? readFileSync(file) : undefined;
}
