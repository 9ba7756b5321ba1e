/** A broker as its operator runs it, with a small platform and agents' calls, for tests of the daily commands. */
import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { jsonRequest, signToken } from './agent.ts';
import { commandHost, type Ran, runCommand, type Served, startServe } from './command.ts';
import { startUpstream, type Upstream } from './servers/upstream.ts';
import { newFolder } from './stores.ts';

export type Asked = { method?: string; endpoint?: string; data?: object; reason?: string; scope?: string };

export type CliWorld = {
  folder: string;
  env: Record<string, string>;
  upstream: Upstream;
  url(): string;
  run(...words: string[]): Promise<Ran>;
  /** Runs a command in a separate process: for commands that run concurrently with another. */
  runApart(...words: string[]): Promise<Ran>;
  /** Runs a command that has to succeed; returns its JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the command prints.
  json(...words: string[]): Promise<any>;
  /** Creates an agent that may read and write on the platform `codehost`; returns its id. */
  agent(name: string, ...words: string[]): Promise<string>;
  /** Makes a call as an agent; returns the answer. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the broker answers.
  act(name: string, call: Asked): Promise<{ status: number; body: any }>;
  /** Makes a call that is held; returns the id of the approval. */
  hold(name: string, call?: Asked): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the broker answers.
  owner(method: string, path: string, body?: object): Promise<{ status: number; body: any }>;
  /** Stops the broker and starts it again, on the same port. */
  restart(whileDown?: () => Promise<void>): Promise<void>;
};

/** Issues of repositories: reading is allowed, writing is held, deleting is refused. */
const governance = (upstream: string) => `
organisation: acme
platforms:
  codehost: { use: github, base_url: "${upstream}" }
connections:
  main: { platform: codehost, secret: { env: CODEHOST_TOKEN } }
policies:
  careful:
    rules:
      - { effect: allow, scopes: ["codehost:*.read"] }
      - { effect: require_approval, methods: [POST, PUT, PATCH] }
      - { effect: deny, methods: [DELETE] }
`;

export async function startCliWorld(): Promise<CliWorld> {
  const folder = newFolder();
  const upstream = await startUpstream();
  const env = { AGENT_BROKER_DATA: join(folder, 'data') };
  const setting = { cwd: folder, env: { ...env, CODEHOST_TOKEN: 'codehost-token-0123456789' } };
  const hosted = commandHost();
  const run = (...words: string[]) => hosted(words, setting);
  let served: Served;
  const start = async (more: Record<string, string>) => {
    const own = { ...env, AGENT_BROKER_ALLOW_PRIVATE: upstream.address, ...more };
    served = await startServe(['--no-sandbox'], { cwd: folder, env: own }, 'Console');
  };
  await start({});
  writeFileSync(join(folder, 'governance.yaml'), governance(upstream.url));
  const applied = await run('apply', 'governance.yaml');
  expect(applied.code, applied.stderr).toBe(0);
  const token = (await run('owner', 'token')).stdout.trim();
  const sent = async (path: string, bearer: string, method: string, body?: object) => {
    const response = await fetch(served.url + path, jsonRequest(method, body, { authorization: `Bearer ${bearer}` }));
    return { status: response.status, body: await response.json() };
  };
  const cli: CliWorld = {
    folder,
    env,
    upstream,
    url: () => served.url,
    run,
    runApart: (...words) => runCommand(words, setting),
    json: async (...words) => {
      const { code, stdout, stderr } = await run(...words, '--json');
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout);
    },
    agent: async (name, ...words) => {
      const terms = words.length > 0 ? words : ['--grant', 'codehost=codehost:issues.read,codehost:issues.write'];
      const out = ['--out', join(folder, `${name}.json`)];
      return (await cli.json('agent', 'create', name, ...out, '--policy', 'careful', ...terms)).agent_id;
    },
    act: async (name, call) => {
      // Signed here: a process of `agent-broker token` takes a hundred times as long.
      const profile = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
      const { agent_id, owner_id, private_key } = profile;
      const iat = Math.floor(Date.now() / 1000);
      const bearer = signToken({ agent_id, owner_id, iat, exp: iat + 60 }, createPrivateKey(private_key));
      const asked = {
        platform: 'codehost',
        endpoint: '/repos/acme/shop/issues',
        method: 'GET',
        scope: 'codehost:issues.read',
      };
      return await sent('/v1/actions', bearer, 'POST', { ...asked, ...call });
    },
    hold: async (name, call = {}) => {
      const asked = { method: 'POST', scope: 'codehost:issues.write', data: { title: 'Broken cup' }, ...call };
      const { status, body } = await cli.act(name, asked);
      expect(status, JSON.stringify(body)).toBe(202);
      return body.approval_id;
    },
    owner: async (method, path, body) => await sent(path, token, method, body),
    restart: async (whileDown) => {
      await served.stop();
      await whileDown?.();
      await start({ PORT: new URL(served.url).port });
    },
  };
  return cli;
}
