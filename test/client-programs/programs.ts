/** Agent programs of others, which `npm run lab:programs` installs: 2 GB, and no part of `npm ci`. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { configFile } from '../../bin/client-config.ts';
import type { ClientId } from '../../bin/clients.ts';
import { afterFile } from '../world/after-file.ts';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { shellAtTerminal } from '../world/terminal.ts';

/** In the folder that CLIENT_PROGRAMS names, of the checkout or elsewhere. */
export const binOf = (name: string): string =>
  resolve(ROOT, process.env.CLIENT_PROGRAMS!, 'node_modules', '.bin', name);

export type Program = {
  client: ClientId;
  bin: string;
  /** What its user has in its file of settings, if there is one: its model is at this address. */
  settings?(model: string): string;
  environment?(model: string): Record<string, string>;
  /** A command of it that is run before. */
  before?(model: string): string[];
  /** A prompt without a person at the terminal. `file`: of its settings. */
  words(prompt: string, file: string): string[];
  /** How it is told of an MCP server at an address, and what its user types to sign in there with a browser. */
  remote?: {
    add?(name: string, url: string): string[];
    settings?(text: string, name: string, url: string): string;
    login(name: string): string[];
    /** In its own interface: once this is shown, that is typed, and in the end it shows that. */
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
    // The first return takes what it completes.
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
    // It signs in as it starts, and asks first whether the folder is trusted.
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

/** Ends what a program left running in its home folder, as Cline does its hub. */
function endAllAt(home: string): void {
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${home}`)) process.kill(pid);
    } catch {
      // It has ended, or is another user's.
    }
  }
}

/** A program in a home folder of its own, with its settings. */
export function atHome({ client, bin, settings, environment, before, words }: Program, model: string) {
  const home = newFolder();
  const file = configFile(client, { platform: process.platform, environment: {}, home, cwd: home }, 'user')!;
  const write = (text: string) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  const text = settings?.(model);
  if (text !== undefined) write(text);
  // The browser that it opens is none: where it would go is written down.
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
  /** Starts it at a terminal. */
  const startAtTerminal = (given: readonly string[]) =>
    shellAtTerminal(`exec ${[binOf(bin), ...given].map((word) => `'${word}'`).join(' ')}`, {
      ...options,
      columns: 200,
    });
  /** Where its browser would be. */
  const browsed = () => (existsSync(opened) ? readFileSync(opened, 'utf8').trim() : '');
  const prompt = (text: string) => start(words(text, file));
  return { home, text: text ?? '', write, run, startAtTerminal, browsed, prompt };
}
