// The lines with which an agent comes to be on its machine. The command line prints the same; whoever has not
// installed it puts `npx` before them.
/** @typedef {{ name: string, url: string, token: string }} Invited */

/** As one word of a shell, quoted where that is needed. */
const word = (/** @type {string} */ text) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** A file name for an agent's name, which may be any text. */
export const fileNameOf = (/** @type {string} */ name) =>
  name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[.-]+|-+$/g, '') || 'agent';

/** Makes the key and the profile, for any program. @param {Invited} invited */
export const bindLine = ({ name, url, token }) =>
  `agent-broker agent create ${word(fileNameOf(name))} --url ${word(url)} --invite ${token}`;

/** The same, and adds the broker to the configuration of a client. @param {Invited & { client: string }} invited */
export const connectLine = ({ client, name, url, token }) =>
  `agent-broker connect ${client} --name ${word(fileNameOf(name))} --url ${word(url)} --invite ${token}`;

/** Clients that `agent-broker connect` knows, by what it calls them; those that people ask for most. */
export const CLIENTS = /** @type {const} */ ([
  ['claude-code', 'Claude Code'],
  ['claude-desktop', 'Claude Desktop'],
  ['cursor', 'Cursor'],
  ['vscode', 'VS Code'],
  ['codex', 'Codex'],
  ['gemini', 'Gemini CLI'],
]);
