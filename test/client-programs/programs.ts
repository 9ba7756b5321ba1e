/** Third-party agent programs, which `npm run lab:programs` installs: 2 GB, not part of `npm ci`. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { configFile } from '../../bin/clients/client-config.ts';
import type { ClientId } from '../../bin/clients/clients.ts';
import { ROOT } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';
import { shellAtTerminal } from '../world/terminal.ts';

/** Returns the path of a program in the folder CLIENT_PROGRAMS, which is relative to the checkout or absolute. */
export const binOf = (name: string): string =>
  resolve(ROOT, process.env.CLIENT_PROGRAMS!, 'node_modules', '.bin', name);

export type Program = {
  client: ClientId;
  bin: string;
  /** The user's settings file for a model at this base URL; absent when the program needs none. */
  settings?(model: string): string;
  environment?(model: string): Record<string, string>;
  /** The arguments of a command of the program that sets it up. */
  before?(model: string): string[];
  /** The arguments that run a prompt non-interactively. `file`: the path of its settings. */
  words(prompt: string, file: string): string[];
  /** How a remote MCP server is added, and the command with which its user signs in there with a browser. */
  remote?: {
    add?(name: string, url: string): string[];
    settings?(text: string, name: string, url: string): string;
    login(name: string): string[];
    /** For a login in the program's own interface: the lines are typed once `once` is shown, and `ended` is shown after the login. */
    types?: { once: RegExp; lines(name: string): string[]; ended: RegExp };
  };
};

export const PROGRAMS: Program[] = [
  {
    ...{ client: 'claude-code', bin: 'claude' },
    environment: (model) => ({
      ...{ ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: 'sk-ant-none' },
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ENABLE_TOOL_SEARCH: 'false' },
    }),
    words: (prompt) => ['-p', prompt, '--allowedTools', 'mcp__agent-broker'],
    remote: {
      add: (name, url) => ['mcp', 'add', '--scope', 'user', '--transport', 'http', name, url],
      login: (name) => ['mcp', 'login', name],
    },
  },
  {
    ...{ client: 'codex', bin: 'codex' },
    settings: (model) =>
      `model = "gpt-5"\nmodel_provider = "local"\n\n[model_providers.local]\nname = "local"\nbase_url = "${model}/v1"\nwire_api = "responses"\n`,
    words: (prompt) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    remote: {
      settings: (text, name, url) => `${text}\n[mcp_servers.${name}]\nurl = "${url}"\n`,
      login: (name) => ['mcp', 'login', name],
    },
  },
  {
    ...{ client: 'gemini', bin: 'gemini' },
    settings: () => '{\n  "security": { "auth": { "selectedType": "gemini-api-key" } }\n}\n',
    environment: (model) => ({
      ...{ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    }),
    words: (prompt) => ['-p', prompt, '--approval-mode', 'yolo', '-m', 'gemini-2.5-pro'],
    // The first return accepts the completion, so a second one follows.
    remote: {
      add: (name, url) => ['mcp', 'add', '--scope', 'user', '--transport', 'http', name, url],
      login: () => [],
      types: { once: /for shortcuts/, lines: (name) => [`/mcp auth ${name}`, ''], ended: /Successfully|success/i },
    },
  },
  {
    ...{ client: 'qwen', bin: 'qwen' },
    environment: (model) => ({ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: 'model' }),
    words: (prompt) => ['-p', prompt, '--yolo', '--auth-type', 'openai'],
  },
  {
    ...{ client: 'opencode', bin: 'opencode' },
    settings: (model) => {
      const options = { baseURL: `${model}/v1`, apiKey: 'none' };
      const local = { npm: '@ai-sdk/openai-compatible', options, models: { model: {} } };
      return `${JSON.stringify({ model: 'local/model', provider: { local } }, null, 2)}\n`;
    },
    words: (prompt) => ['run', prompt],
    remote: {
      settings: (text, name, url) =>
        JSON.stringify({ ...JSON.parse(text), mcp: { [name]: { type: 'remote', url, enabled: true } } }),
      login: (name) => ['mcp', 'auth', name],
    },
  },
  {
    ...{ client: 'copilot', bin: 'copilot' },
    environment: (model) => ({
      ...{ COPILOT_PROVIDER_TYPE: 'openai', COPILOT_PROVIDER_BASE_URL: `${model}/v1` },
      ...{ COPILOT_PROVIDER_API_KEY: 'none', COPILOT_MODEL: 'model' },
    }),
    words: (prompt) => ['-p', prompt, '--allow-all-tools'],
    // The program signs in at its start, and asks first whether the folder is trusted.
    remote: {
      add: (name, url) => ['mcp', 'add', '--transport', 'http', name, url],
      login: () => [],
      types: { once: /trust the files/, lines: () => [''], ended: /agent-broker/ },
    },
  },
  {
    ...{ client: 'cline', bin: 'cline' },
    before: (model) =>
      ['auth', '--provider', 'openai', '--apikey', 'none', '--modelid', 'model'].concat('--baseurl', `${model}/v1`),
    words: (prompt) => ['--provider', 'openai', '--model', 'model', prompt],
  },
  {
    ...{ client: 'continue', bin: 'cn' },
    settings: (model) =>
      `name: mine\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: local\n    provider: openai\n    model: model\n    apiBase: ${model}/v1\n    apiKey: none\n    roles: [chat]\n    capabilities: [tool_use]\n`,
    words: (prompt, file) => ['--config', file, '--auto', '-p', prompt],
  },
];

export const isInstalled = (bin: string): boolean => existsSync(binOf(bin));

/** Ends the processes that a program left running with this home folder, such as the hub of Cline. */
function endAllAt(home: string): void {
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`)) process.kill(pid);
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
}

/** Sets up a program in a home folder of its own, with its settings. */
export function atHome({ client, bin, settings, environment, before, words }: Program, model: string) {
  const home = newFolder();
  const file = configFile(client, { platform: process.platform, environment: {}, home, cwd: home }, 'user')!;
  const write = (text: string) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  const text = settings?.(model);
  if (text !== undefined) write(text);
  // A script in place of the browser records the URLs that the program opens.
  const [commands, opened] = [newFolder(), join(newFolder(), 'opened')];
  const opener = join(commands, 'xdg-open');
  writeFileSync(opener, `#!/bin/sh\necho "$1" >> '${opened}'\n`, { mode: 0o755 });
  const options = {
    cwd: newFolder(),
    env: {
      ...{ PATH: `${commands}:${process.env.PATH}`, HOME: home, BROWSER: opener, DISPLAY: ':0' },
      ...{ TERM: 'xterm', NO_COLOR: '1', ...environment?.(model) },
    },
  };
  afterFile(() => endAllAt(home));
  const run = (given: readonly string[]) => execFileSync(binOf(bin), given, { ...options, stdio: 'pipe' });
  if (before) run(before(model));
  const start = (given: readonly string[]) => {
    const child = spawn(binOf(bin), given, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const code = new Promise<number | null>((done) => child.on('close', done));
    return { code, output: () => output };
  };
  /** Starts the program at a terminal. */
  const startAtTerminal = (given: readonly string[]) =>
    shellAtTerminal(`exec ${[binOf(bin), ...given].map((word) => `'${word}'`).join(' ')}`, {
      ...options,
      columns: 200,
    });
  /** Returns the URL that the program opened in its browser, or an empty string. */
  const browsed = () => (existsSync(opened) ? readFileSync(opened, 'utf8').trim() : '');
  const prompt = (text: string) => start(words(text, file));
  return { home, text: text ?? '', write, run, startAtTerminal, browsed, prompt };
}
