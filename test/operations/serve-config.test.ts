/** `serve --config` as operators run it: real processes, one after the other on the same data folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compactVerify, createLocalJWKSet } from 'jose';
import { afterEach, describe, expect, test } from 'vitest';
import { runFile } from '../../broker/process/run-file.ts';
import {
  type Answer,
  expectStatus,
  jsonPost,
  jsonRequest,
  type KeyPair,
  makeKeyPair,
  send,
  signToken,
} from '../world/agent.ts';
import { BIN, COMPILE_CACHE } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const K1 = makeKeyPair();
const K2 = makeKeyPair();
const K3 = makeKeyPair();

type Ended = { code: number | null; stdout: string; stderr: string };

function start(folder: string, words: readonly string[]) {
  const child = spawn(process.execPath, [BIN, ...words], {
    cwd: folder,
    env: {
      PATH: process.env.PATH!,
      AGENT_BROKER_DATA: join(folder, 'data'),
      PORT: '0',
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      CRM: 'CANARY-crm-0123456789',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    written.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    written.stderr += text;
  });
  const ended = once(child, 'close').then(([code]): Ended => ({ code, ...written }));
  return { child, written, ended };
}

class Served {
  readonly url: string;
  readonly token: string;
  readonly started: ReturnType<typeof start>;
  constructor(started: ReturnType<typeof start>, url: string, token: string) {
    this.started = started;
    this.url = url;
    this.token = token;
  }

  async ask(method: string, path: string, body?: object): Promise<Answer> {
    return await send(this.url + path, jsonRequest(method, body, { authorization: `Bearer ${this.token}` }));
  }

  async agent(name: string) {
    const { agents } = (await this.ask('GET', '/owner/agents')).body;
    return agents.find((agent: { name: string }) => agent.name === name);
  }

  /** Makes a call of the agent with this name; nothing listens at the platform's address, so an allowed call answers 502. */
  async call(name: string, keys: KeyPair, scope = 'crm:read'): Promise<Answer> {
    const { agent_id, owner_id } = await this.agent(name);
    const iat = Math.floor(Date.now() / 1000);
    const bearer = signToken({ agent_id, owner_id, iat, exp: iat + 60 }, keys.privateKey);
    return await send(
      `${this.url}/v1/actions`,
      jsonPost(
        { platform: 'crm', endpoint: '/x', method: scope === 'crm:read' ? 'GET' : 'POST', scope },
        { authorization: `Bearer ${bearer}` },
      ),
    );
  }

  /** Returns the recorded events, oldest first, each with the content of its verified receipt. */
  async events() {
    const { rows } = (await this.ask('GET', '/owner/audit?kind=event&limit=100')).body;
    const keys = createLocalJWKSet((await send(`${this.url}/.well-known/svc-receipt-keys.json`, {})).body);
    const events = [];
    for (const { id, reason, detail } of rows.toReversed()) {
      const { receipt } = (await this.ask('GET', `/v1/audit/${id}/receipt`)).body;
      const { payload } = await compactVerify(receipt, keys);
      const { change, jti } = JSON.parse(new TextDecoder().decode(payload));
      expect(jti).toBe(id);
      events.push({ reason, detail, change });
    }
    return events;
  }

  async stop(): Promise<Ended> {
    this.started.child.kill('SIGTERM');
    const ended = await this.started.ended;
    expect(ended.code, ended.stderr).toBe(0);
    return ended;
  }
}

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

async function serve(folder: string, words: readonly string[]): Promise<Served> {
  const started = start(folder, ['serve', ...words]);
  running.add(started.child);
  const ready = new Promise<string>((done) => {
    started.child.stdout.on('data', () => {
      const url = /running at (\S+)/.exec(started.written.stdout)?.[1];
      if (url && started.written.stdout.includes('Next,')) done(url);
    });
  });
  const url = await Promise.race([ready, started.ended]);
  if (typeof url !== 'string') throw new Error(`serve ended with ${url.code}: ${url.stderr}`);
  // As `agent-broker owner token` does, without another process.
  const { local_token } = JSON.parse(readFileSync(runFile(join(folder, 'data')), 'utf8'));
  const headers = { authorization: `Bearer ${local_token}`, 'content-type': 'application/json' };
  const { body } = await expectStatus(200, send(`${url}/owner/token`, { method: 'POST', headers, body: '{}' }));
  return new Served(started, url, body.token);
}

const PLATFORM = `platforms:
  crm: { kind: rest, base_url: "http://127.0.0.1:9", auth: { type: bearer }, scopes: { "crm:read": ["GET /**"], "crm:write": ["POST /**"] } }
connections:
  crm: { platform: crm, secret: { env: CRM } }
`;
const policy = (effect: string) => `policies: { careful: { rules: [{ effect: ${effect} }] } }\n`;
const agent = (name: string, { publicPem }: KeyPair, scope = 'crm:read') =>
  `  ${name}: { policy: careful, public_key: { pem: ${JSON.stringify(publicPem)} }, grants: { crm: { scopes: ["${scope}"] } } }\n`;

describe('serve --config', { timeout: 270_000 }, () => {
  // One organisation through three starts, since each start is a process.
  test('records a row and a receipt that list what the file changed, and none when nothing changed; starts with a warning and a remedy when agents in the file were bound to other keys, revoked or deleted', async () => {
    const folder = newFolder();
    const file = join(folder, 'governance.yaml');
    const text = (scope?: string) =>
      `${PLATFORM}${policy('allow')}agents:\n${agent('rebound', K1, scope)}${agent('deleted', K2)}${agent('revoked', K3)}`;
    writeFileSync(file, text());
    let broker = await serve(folder, ['--config', 'governance.yaml']);
    // The file is applied: the next step is not to write one.
    expect(broker.started.written.stdout).toMatch(/^Next, when you change the file: .*plan governance\.yaml$/m);
    const applied = (changes: string[]) => ({
      reason: 'governance_applied',
      detail: 'serve --config governance.yaml',
      change: { by: 'operator', how: 'start', changes },
    });
    const made = applied([
      'create platform crm',
      'create policy careful',
      'create connection crm',
      ...['rebound', 'deleted', 'revoked'].flatMap((name) => [`create agent ${name}`, `create grant ${name} on crm`]),
    ]);
    expect(await broker.events()).toEqual([expect.objectContaining({ reason: 'organisation_created' }), made]);
    expect((await broker.call('rebound', K1)).status).toBe(502);
    const ids = Object.fromEntries(
      await Promise.all(['rebound', 'deleted', 'revoked'].map(async (name) => [name, (await broker.agent(name)).id])),
    );
    const owner = (path: string) => broker.ask('POST', `/owner/agents/${path}`, {});
    const own = makeKeyPair();
    const values = { 'env:CRM': 'CANARY-crm-0123456789' };
    const rebinding = { text: text().replace(JSON.stringify(K1.publicPem), JSON.stringify(own.publicPem)), values };
    const bound = await broker.ask('POST', '/owner/governance/apply', rebinding);
    expect(bound.body.changes, bound.text).toEqual([expect.objectContaining({ kind: 'key', name: 'rebound' })]);
    for (const path of [`${ids.revoked}/revoke`, `${ids.deleted}/revoke`, `${ids.deleted}/delete`])
      expect((await owner(path)).status).toBe(200);
    const recorded = await broker.events();
    await broker.stop();

    broker = await serve(folder, ['--config', 'governance.yaml']);
    expect(await broker.events(), 'nothing was changed').toEqual(recorded);
    const warnings = broker.started.written.stderr;
    expect(warnings).toContain(
      'warning: governance.yaml:7:31: agents.rebound.public_key: this key was replaced by another one and cannot be used again. The agent was left with the key that it has: write that one here, or leave `public_key` out.',
    );
    expect(warnings).toContain('agents.deleted.public_key: this is the key of the agent "deleted", which was deleted.');
    expect(warnings).toContain('The agent was not made: give it a new key pair, or take it out of the file.');
    expect(warnings).toContain('agents.revoked: was revoked permanently');
    expect(await broker.agent('deleted')).toBeUndefined();
    expect(await broker.agent('revoked')).toMatchObject({ id: ids.revoked, status: 'revoked' });
    expect(await broker.agent('rebound')).toMatchObject({ id: ids.rebound, status: 'active' });
    expect((await broker.call('rebound', own)).status).toBe(502);
    expect((await broker.call('rebound', K1)).status).toBe(401);
    // The owner API still rejects the same file.
    const refused = await broker.ask('POST', '/owner/governance/plan', {
      text: text(),
      values,
    });
    expect(refused.body.problems).toHaveLength(2);
    await broker.stop();

    // The rest of the agent's entry applies.
    writeFileSync(file, text('crm:write'));
    broker = await serve(folder, ['--config', 'governance.yaml']);
    expect((await broker.call('rebound', own)).body.reason).toBe('scope_not_granted');
    expect((await broker.call('rebound', own, 'crm:write')).status).toBe(502);
    expect(await broker.events()).toEqual([...recorded, applied(['update grant rebound on crm'])]);
    await broker.stop();
  });

  test('does not start with an invalid file', async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, 'governance.yaml'),
      `${PLATFORM}${policy('allow')}agents:\n${agent('a', K1)}${agent('b', K1)}`,
    );
    await expect(serve(folder, ['--config', 'governance.yaml'])).rejects.toThrow(
      // The first start has created the master key, so the next one does not report a new key.
      /^serve ended with 1: A new master key is in \S+\. Keep a copy of it.*\n.*agents\.b\.public_key: this is the key of the agent "a"/,
    );
    writeFileSync(join(folder, 'governance.yaml'), Buffer.from('organisation: caf\xe9\n', 'latin1'));
    await expect(serve(folder, ['--config', 'governance.yaml'])).rejects.toThrow(
      'The governance file governance.yaml is not text in UTF-8, from its line 1 on; save it in UTF-8.',
    );
  });
});

describe('serve on a new data folder', { timeout: 270_000 }, () => {
  test('records rows and receipts for the first organisation and the sandbox', async () => {
    const folder = newFolder();
    let broker = await serve(folder, []);
    const expected = [
      {
        reason: 'organisation_created',
        detail: null,
        change: { by: 'operator', how: 'start', owner: expect.any(String), role: 'admin' },
      },
      {
        reason: 'governance_applied',
        detail: 'the sandbox',
        change: {
          by: 'operator',
          how: 'start',
          changes: [
            'create platform sandbox',
            'create policy sandbox',
            'create connection sandbox',
            'create agent sandbox-agent',
            'create grant sandbox-agent on sandbox',
          ],
        },
      },
    ];
    expect(await broker.events()).toEqual(expected);
    await broker.stop();
    broker = await serve(folder, []);
    expect(await broker.events()).toEqual(expected);
    await broker.stop();
  });
});
