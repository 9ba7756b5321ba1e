/**
 * The whole life of agents, driven by a program that knows only the documentation: a broker started from the command line, `fetch`, and keys and tokens
 * made with openssl. Imports nothing from the broker.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectStatus, jsonRequest } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const folder = newFolder();
const data = join(folder, 'data');
const openssl = (words: readonly string[], input?: string | Buffer): Buffer =>
  execFileSync('openssl', words, { input: input ?? '', stdio: ['pipe', 'pipe', 'ignore'] });

/** Why the tests are skipped: no openssl. In CI, openssl is required. */
const missing = (() => {
  try {
    openssl(['version']);
    return undefined;
  } catch {
    return 'openssl is not installed';
  }
})();
if (missing && process.env.CI) throw new Error(missing);

type Answer = {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a stranger looks at whatever came.
  body: any;
};
type Agent = { agent_id: string; owner_id: string; key: string };

describe.skipIf(missing)(`agents without our client code${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let broker: ChildProcess;
  let url = '';
  let owner = '';
  let ownerId = '';

  beforeAll(async () => {
    broker = spawn(process.execPath, [BIN, 'serve'], {
      cwd: folder,
      env: { PATH: process.env.PATH, PORT: '0', DRAIN_SECONDS: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: data },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    url = await new Promise((found, reject) => {
      let output = '';
      for (const stream of [broker.stdout!, broker.stderr!])
        stream.on('data', (chunk) => {
          output += chunk;
          const address = /running at (http:\S+)/.exec(output)?.[1];
          if (address) found(address);
        });
      broker.once('exit', (code) => reject(new Error(`the broker ended with ${code}: ${output}`)));
    });
    const env = { PATH: process.env.PATH, AGENT_BROKER_DATA: data };
    owner = execFileSync(process.execPath, [BIN, 'owner', 'token'], { cwd: folder, env }).toString().trim();
    ownerId = (await ask('GET', '/owner/me', undefined, owner)).body.id;
  });
  afterAll(async () => {
    if (broker?.exitCode !== null) return;
    const ended = new Promise((done) => broker.once('exit', done));
    broker.kill('SIGTERM');
    await ended;
  });

  async function ask(method: string, path: string, body?: unknown, bearer?: string): Promise<Answer> {
    const headers = bearer ? { authorization: `Bearer ${bearer}` } : {};
    const response = await fetch(url + path, jsonRequest(method, body, headers));
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  }
  const asOwner = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await ask(method, path, body, owner);
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer;
  };

  let keys = 0;
  /** Makes a key pair: the private key in a file, the public key as PEM. */
  function newKey(): { key: string; pem: string } {
    const key = join(folder, `${++keys}.key`);
    openssl(['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', key]);
    return { key, pem: openssl(['pkey', '-in', key, '-pubout']).toString() };
  }
  const base64url = (bytes: Buffer | string): string => Buffer.from(bytes).toString('base64url');
  function sign({ agent_id, owner_id, key }: Agent): string {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { agent_id, owner_id, iat, exp: iat + 60 };
    const input = `${base64url('{"alg":"RS256","typ":"JWT"}')}.${base64url(JSON.stringify(claims))}`;
    return `${input}.${base64url(openssl(['dgst', '-sha256', '-sign', key, '-binary'], input))}`;
  }
  const READ = { platform: 'sandbox', endpoint: '/issues/1', method: 'GET', scope: 'sandbox:issues.read' };
  const MAIL = {
    platform: 'sandbox',
    endpoint: '/mail',
    method: 'POST',
    scope: 'sandbox:mail.send',
    data: { to: ['a@b.example'], subject: 's', text: 't' },
  };
  const act = async (bearer: string | Agent, action: Record<string, unknown> = READ): Promise<Answer> =>
    await ask('POST', '/v1/actions', action, typeof bearer === 'string' ? bearer : sign(bearer));
  const expectCalls = async (agent: string | Agent) => {
    const answer = await act(agent);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    expect(answer.body.data).toMatchObject({ number: 1 });
    expect(answer.body._meta.audit_id).toMatch(/^[0-9a-f-]{36}$/);
  };
  const expectRefused = async (agent: string | Agent, status: number, what: Record<string, unknown>) => {
    const answer = await act(agent);
    expect([answer.status, answer.body]).toEqual([status, expect.objectContaining(what)]);
  };

  test('register → approve → claim → call; the key can be claimed once', async () => {
    const asked = await ask('POST', '/v1/register', {
      owner_id: ownerId,
      agent_name: 'registered',
      requested_scopes: [{ platformId: 'sandbox', scopes: ['sandbox:issues.read'] }],
    });
    expect(asked.status).toBe(202);
    const { registration_token: token, poll_url, client_id } = asked.body;
    expect((await ask('GET', poll_url)).body.status).toBe('pending');
    expect((await ask('GET', `/v1/register/claim-key/${token}`)).status).toBe(409);
    expect((await ask('POST', `/v1/register/approve/${token}`, {})).status).toBe(401);
    await asOwner('POST', `/v1/register/approve/${token}`, { policy: 'sandbox' });
    const { body: polled } = await ask('GET', poll_url);
    expect(polled).toMatchObject({ status: 'approved', agent_id: client_id });
    const claimed = await expectStatus(200, ask('GET', `/v1/register/claim-key/${token}`));
    expect((await ask('GET', `/v1/register/claim-key/${token}`)).status).toBe(410);
    const key = join(folder, 'claimed.key');
    execFileSync('sh', ['-c', `cat > ${key}`], { input: claimed.body.private_key });
    expect(openssl(['pkey', '-in', key, '-noout', '-text']).toString()).toMatch(/2048 bit/);
    const agent = { agent_id: client_id, owner_id: ownerId, key };
    await expectCalls(agent);
    const mail = await act(agent, MAIL);
    expect([mail.status, mail.body.reason]).toEqual([403, 'scope_not_granted']);
  });

  test('bootstrap token → bind → call with a local key; the next key replaces it', async () => {
    const made = (await asOwner('POST', '/owner/invites', { agent_name: 'bootstrapped', policy: 'sandbox' })).body;
    const first = newKey();
    const { body: invited } = await ask('POST', '/v1/invites/bind', {
      bind_secret: made.bind_secret,
      public_key_pem: first.pem,
    });
    await asOwner('POST', `/owner/agents/${invited.agent_id}/grants/sandbox`, { scopes: ['sandbox:issues.read'] });
    const before = { ...invited, key: first.key };
    await expectCalls(before);
    const { bootstrap_token } = (
      await asOwner('POST', `/owner/agents/${invited.agent_id}/bootstrap-token`, { rotate: true })
    ).body;
    const second = newKey();
    const bound = await ask('POST', '/v1/agents/bind', { bootstrap_token, public_key_pem: second.pem });
    expect([bound.status, bound.body]).toEqual([
      200,
      { agent_id: invited.agent_id, owner_id: ownerId, status: 'active', proxy_url: url },
    ]);
    await expectRefused(before, 401, { error: 'invalid_signature' });
    await expectCalls({ ...bound.body, key: second.key });
    const again = await ask('POST', '/v1/agents/bind', { bootstrap_token, public_key_pem: newKey().pem });
    expect([again.status, again.body.error]).toEqual([410, 'token_used']);
  });

  const invite = async (name: string, scopes: string[]): Promise<Agent> => {
    const { bind_secret } = (
      await asOwner('POST', '/owner/invites', {
        agent_name: `${name} ${keys}`,
        policy: 'sandbox',
        grants: [{ platformId: 'sandbox', scopes }],
      })
    ).body;
    const { key, pem } = newKey();
    const bound = await ask('POST', '/v1/invites/bind', { bind_secret, public_key_pem: pem });
    expect(bound.status, JSON.stringify(bound.body)).toBe(200);
    return { ...bound.body, key };
  };

  test('invite → call → held → approved → made; suspended → refused → resumed', async () => {
    const agent = await invite('invited', ['sandbox:issues.read', 'sandbox:mail.send']);
    await expectCalls(agent);
    const held = await act(agent, MAIL);
    expect([held.status, held.body.status], JSON.stringify(held.body)).toEqual([202, 'pending_approval']);
    await asOwner('POST', `/owner/approvals/${held.body.approval_id}/approve`, {});
    const { body: approval } = await ask(
      'GET',
      `/v1/approvals/${held.body.approval_id}?wait=20`,
      undefined,
      sign(agent),
    );
    expect(approval).toMatchObject({ status: 'approved' });
    await asOwner('POST', `/owner/agents/${agent.agent_id}/suspend`, { reason: 'a look first' });
    await expectRefused(agent, 403, { error: 'agent_halted', reason: 'agent_suspended' });
    const me = await ask('GET', '/v1/agents/me', undefined, sign(agent));
    expect(me.body).toMatchObject({
      agent_status: 'suspended',
      halt: { cause: 'owner_manual', detail: 'a look first' },
    });
    await asOwner('POST', `/owner/agents/${agent.agent_id}/resume`, {});
    await expectCalls(agent);
  });

  test('parent → child → call; narrowing, suspending or revoking the parent applies to the child’s next call', async () => {
    const parent = await invite('parent', ['sandbox:issues.read', 'sandbox:issues.write']);
    const born = async (scopes: string[]): Promise<Answer> =>
      await ask(
        'POST',
        '/v1/agents/children',
        { ttl_seconds: 600, grants: [{ platform: 'sandbox', scopes }] },
        sign(parent),
      );
    const { status, body: child } = await born(['sandbox:issues.read', 'sandbox:issues.write', 'sandbox:mail.send']);
    expect(status, JSON.stringify(child)).toBe(201);
    expect(child.granted[0].scopes, 'what the parent does not hold is dropped').toEqual([
      'sandbox:issues.read',
      'sandbox:issues.write',
    ]);
    await expectCalls(child.bearer_token);
    const me = await ask('GET', '/v1/agents/me', undefined, child.bearer_token);
    expect(me.body).toMatchObject({ agent_id: child.child_agent_id, parent_agent_id: parent.agent_id });
    const grandchild = await ask(
      'POST',
      '/v1/agents/children',
      { grants: [{ platform: 'sandbox', scopes: ['sandbox:issues.read'] }] },
      child.bearer_token,
    );
    expect(grandchild.status).toBe(403);

    await asOwner('POST', `/owner/agents/${parent.agent_id}/grants/sandbox`, { scopes: ['sandbox:issues.write'] });
    await expectRefused(child.bearer_token, 403, { reason: 'scope_not_granted' });
    await expectRefused(parent, 403, { reason: 'scope_not_granted' });
    await asOwner('POST', `/owner/agents/${parent.agent_id}/grants/sandbox`, { scopes: ['sandbox:issues.read'] });
    await expectCalls(child.bearer_token);
    await asOwner('POST', `/owner/agents/${parent.agent_id}/suspend`, {});
    await expectRefused(child.bearer_token, 403, { reason: 'agent_suspended' });
    await asOwner('POST', `/owner/agents/${parent.agent_id}/resume`, {});
    await expectCalls(child.bearer_token);
    await asOwner('POST', `/owner/agents/${parent.agent_id}/revoke`, {});
    await expectRefused(child.bearer_token, 403, { reason: 'agent_revoked' });
  });

  test('a receipt verifies with openssl and the published key', async () => {
    const agent = await invite('receipted', ['sandbox:issues.read']);
    const { body } = await act(agent);
    const receipt = await ask('GET', `/v1/audit/${body._meta.audit_id}/receipt`, undefined, sign(agent));
    const [head = '', payload = '', signature = ''] = receipt.body.receipt.split('.');
    const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString());
    const { keys: published } = (await (await fetch(receipt.body.jwks_url)).json()) as {
      keys: Record<string, string>[];
    };
    const { x = '', y = '' } = published.find((one) => one.kid === kid)!;
    // SubjectPublicKeyInfo of a P-256 key (RFC 5480), and the signature in the DER form that openssl expects (RFC 3279 section 2.2.3).
    const spki = Buffer.concat([
      Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from(y, 'base64url'),
    ]);
    const bytes = Buffer.from(signature, 'base64url');
    const integer = (part: Buffer) => {
      const from = part.findIndex((byte) => byte !== 0);
      const short = part.subarray(from);
      const padded = short[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), short]) : short;
      return Buffer.concat([Buffer.from([2, padded.length]), padded]);
    };
    const both = Buffer.concat([integer(bytes.subarray(0, 32)), integer(bytes.subarray(32))]);
    const [pub, der] = [join(folder, 'receipt.der'), join(folder, 'receipt.sig')];
    execFileSync('sh', ['-c', `cat > ${pub}`], { input: spki });
    execFileSync('sh', ['-c', `cat > ${der}`], { input: Buffer.concat([Buffer.from([0x30, both.length]), both]) });
    const verify = (text: string) =>
      openssl(['dgst', '-sha256', '-verify', pub, '-keyform', 'DER', '-signature', der], text).toString().trim();
    expect(verify(`${head}.${payload}`)).toBe('Verified OK');
    expect(() => verify(`${head}.${payload}x`)).toThrow();
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({
      jti: body._meta.audit_id,
      agent: agent.agent_id,
      result: 'allowed',
    });
  });

  test('a call without a token, or signed with another key, is refused', async () => {
    expect((await act('')).body.error).toBe('missing_token');
    const agent = await invite('stolen-name', ['sandbox:issues.read']);
    await expectRefused({ ...agent, key: newKey().key }, 401, { error: 'invalid_signature' });
    expect(readFileSync(agent.key, 'utf8')).toContain('PRIVATE KEY');
  });
});
