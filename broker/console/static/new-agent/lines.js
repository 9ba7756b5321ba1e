// The command lines that set up an agent on its machine. `agent-broker` prints the same lines; without
// an installation they are prefixed with `npx`.
/** @typedef {{ name: string, url: string, token: string }} Invited */

/** Quotes a text as one word of a shell command where needed. */
const word = (/** @type {string} */ text) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns a file name for an agent's name, which may be any text. */
export const fileNameOf = (/** @type {string} */ name) =>
  name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[.-]+|-+$/g, '') || 'agent';

/** Creates the key and the profile, for any program. @param {Invited} invited */
export const bindLine = ({ name, url, token }) =>
  `agent-broker agent create ${word(fileNameOf(name))} --url ${word(url)} --invite ${token}`;

/** The same, and adds the broker to a client's configuration. @param {Invited & { client: string }} invited */
export const connectLine = ({ client, name, url, token }) =>
  `agent-broker connect ${client} --name ${word(fileNameOf(name))} --url ${word(url)} --invite ${token}`;

/** Clients that `agent-broker connect` supports, by its names for them; the most popular ones. */
export const CLIENTS = /** @type {const} */ ([
  ['claude-code', 'Claude Code'],
  ['claude-desktop', 'Claude Desktop'],
  ['cursor', 'Cursor'],
  ['vscode', 'VS Code'],
  ['codex', 'Codex'],
  ['gemini', 'Gemini CLI'],
]);
