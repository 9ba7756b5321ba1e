/** Redirects of reads that a manifest says to follow, through POST /v1/actions and through /proxy. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import tls from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { certificateFor } from '../egress/certificate.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startUpstream, type Upstream } from '../world/servers/upstream.ts';
import { everythingStored } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, type Organisation, startWorld, type World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

const ENTRY_POINTS = ['POST /v1/actions', '/proxy'] as const;
type EntryPoint = (typeof ENTRY_POINTS)[number];

/** The signature of a URL, which is a credential of the platform. */
const SIGNED = 'SIGNATURE-c29tZXRoaW5nLXNpZ25lZA';
const LINES = 'line one\nline two\n';
const SCOPES = { 'demo:read': ['GET /items/**'] };

/** What an agent gets of an answer, through either entry point. */
type Got = {
  status: number;
  text: string;
  followed: string | undefined;
  auditId: string;
  location: string | undefined;
};

const certificate = certificateFor('localhost');
const trusted = tls.getCACertificates('default');
tls.setDefaultCACertificates([...trusted, certificate.cert]);

/** Output on stderr, where the log is written. */
const logged: string[] = [];
vi.spyOn(fs, 'writeSync').mockImplementation((fd: number, text: unknown) => {
  if (fd === 2) logged.push(String(text));
  return Buffer.byteLength(String(text));
});
syncBuiltinESMExports();
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  tls.setDefaultCACertificates(trusted);
});

describe.each(ONE_STORE)(`followed redirects, on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let platform: Upstream;
  /** The server to which signed URLs lead. */
  let storage: Upstream;
  /** A server that the operator listed, for another platform. */
  let other: Upstream;
  beforeAll(async () => {
    platform = await startUpstream();
    storage = await startUpstream(certificate);
    other = await startUpstream(certificate);
    afterFile(async () => {
      await Promise.all([platform, storage, other].map((one) => one.close()));
    });
    world = await startWorld(store, {
      AGENT_BROKER_ALLOW_PRIVATE: [platform, storage, other].map(({ address }) => address).join(','),
      LOG_LEVEL: 'trace',
    });
    organisation = await world.organisation();
    const manifest = {
      base_url: `${platform.url}/v1`,
      // The manifest names the target, which the operator listed although it is private.
      git_base_url: storage.url,
      scopes: SCOPES,
      follow: ['GET /items/*/download', 'GET /items/*/log/**'],
    };
    await organisation.platform({ manifest });
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: { scopeList: ['demo:read'] } } });
  });
  beforeEach(() => {
    for (const one of [platform, storage, other]) one.seen.length = 0;
    storage.answer = (_, response) => {
      response.setHeader('content-type', 'text/plain');
      response.end(LINES);
    };
  });

  const raw = rawClient(() => agent);
  const redirect = (location: string | string[], status = 302) => {
    platform.answer = (_, response) => {
      response.setHeader('location', location);
      response.writeHead(status, { 'content-type': 'text/html' });
      response.end('<p>moved</p>');
    };
  };
  const signed = (path = '/blob/abc') => `${storage.url}${path}?X-Amz-Signature=${SIGNED}`;

  const read = async (entryPoint: EntryPoint, path: string, headers: Record<string, string> = {}): Promise<Got> =>
    entryPoint === '/proxy'
      ? ofProxy(await raw('GET', `/proxy/demo-main${path}`, { headers }))
      : ofActions(await agent.act({ platform: 'demo', endpoint: path, method: 'GET', scope: 'demo:read', headers }));
  const ofProxy = (answer: Answer): Got => ({
    status: answer.status,
    text: answer.text,
    followed: answer.headers.get('x-svc-followed') ?? undefined,
    auditId: answer.headers.get('x-svc-audit-id') ?? '',
    location: answer.headers.get('location') ?? undefined,
  });
  const ofActions = ({ status, body, text }: Answer): Got => ({
    status: status === 200 ? body._meta.upstream_status : status,
    text: status === 200 ? (typeof body.data === 'string' ? body.data : JSON.stringify(body.data)) : text,
    followed: body._meta?.upstream_followed,
    auditId: auditIdOf({ body } as Answer),
    location: body._meta?.upstream_location,
  });
  const flagsOf = async ({ auditId }: Got) => {
    const { row } = await evidenceOf(world, agent, auditId);
    return JSON.parse(row.flags ?? '{}');
  };

  describe.each(ENTRY_POINTS)('through %s', (entryPoint) => {
    test.each([302, 303, 307, 308])('a %i is followed to the answer, without the credential', async (status) => {
      redirect(signed(), status);
      const sent = { accept: 'text/plain', 'if-none-match': '"a"', prefer: 'x-of-the-agent' };
      const got = await read(entryPoint, '/items/1/download', sent);
      expect(got).toMatchObject({ status: 200, text: LINES, followed: 'localhost', location: undefined });
      expect(platform.seen).toHaveLength(1);
      expect(platform.seen[0]?.headers).toMatchObject({ authorization: `Bearer ${CANARY}`, prefer: 'x-of-the-agent' });
      expect(storage.seen).toHaveLength(1);
      const [asked] = storage.seen;
      expect(asked).toMatchObject({ method: 'GET', target: `/blob/abc?X-Amz-Signature=${SIGNED}`, body: '' });
      expect(asked?.headers).toMatchObject({ accept: 'text/plain', 'if-none-match': '"a"' });
      const names = asked?.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
      expect(names?.sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'if-none-match', 'user-agent']);
      expect(asked?.rawHeaders.join('\n')).not.toContain(CANARY);
      expect((await flagsOf(got)).followed).toMatchObject({ host: 'localhost', redirect_status: status });
    });

    test('its row has the host, the status and the number of bytes', async () => {
      redirect(signed());
      storage.answer = (_, response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('gone');
      const got = await read(entryPoint, '/items/1/log/full');
      expect(got).toMatchObject({ status: 404, text: 'gone' });
      const { row, payload } = await evidenceOf(world, agent, got.auditId);
      expect(row).toMatchObject({ result: 'allowed', upstream_status: 404, path: '/items/1/log/full' });
      expect(payload.row_hash).toBe(row.row_hash);
      const { followed, answer_bytes: bytes = followed.bytes } = JSON.parse(row.flags!);
      expect([followed.host, followed.redirect_status, bytes]).toEqual(['localhost', 302, 4]);
    });

    test.each<[string, string, number]>([
      ['an operation that is not listed', '/items/1', 302],
      ['another spelling of a listed operation', '/items/1/Download', 302],
      ['a permanent redirect (301)', '/items/1/download', 301],
    ])('%s returns the redirect itself', async (_, path, status) => {
      redirect(signed(), status);
      const got = await read(entryPoint, path);
      expect(got).toMatchObject({ status, followed: undefined, location: `${storage.url}/blob/abc` });
      expect(storage.seen).toEqual([]);
    });

    test('a redirect to the platform itself is returned to the agent', async () => {
      redirect(`${platform.url}/v1/items/2/download`);
      const got = await read(entryPoint, '/items/1/download');
      expect(got).toMatchObject({ status: 302, followed: undefined });
      expect(got.location).toMatch(/\/items\/2\/download$/);
      expect(platform.seen).toHaveLength(1);
    });

    test.each<[string, () => string | string[]]>([
      ['http', () => signed().replace('https:', 'http:')],
      ['another scheme', () => 'file:///etc/passwd'],
      ['the platform’s own host, over http', () => `${platform.url}/elsewhere?sig=${SIGNED}`],
      ['another port', () => signed().replace(/:\d+\//, ':9443/')],
      ['a port of the public internet that is not for https', () => `https://storage.example:22/?sig=${SIGNED}`],
      ['user info', () => signed().replace('https://', `https://user:${SIGNED}@`)],
      ['a private address', () => `https://10.0.0.1/blob?sig=${SIGNED}`],
      ['the metadata service', () => `https://169.254.169.254/latest/?sig=${SIGNED}`],
      ['loopback by its address', () => signed().replace('localhost', '127.0.0.1')],
      ['loopback in IPv6', () => signed().replace('localhost', '[::1]')],
      ['a name of loopback', () => `https://files.localhost/blob?sig=${SIGNED}`],
      ['an origin that the operator listed for another platform', () => `${other.url}/blob?sig=${SIGNED}`],
      ['the broker itself', () => agent.baseUrl.replace('http:', 'https:')],
      ['no address at all', () => 'https://'],
      ['two addresses', () => [signed(), signed('/blob/two')]],
      ['an address with the credential in it', () => `${signed()}&token=${CANARY}`],
      ['the credential in base64', () => `${storage.url}/${Buffer.from(CANARY).toString('base64')}`],
    ])('a redirect to %s is not followed', async (_, location) => {
      redirect(location());
      const got = await read(entryPoint, '/items/1/download');
      expect(got).toMatchObject({ status: 502, followed: undefined });
      expect(got.text).toContain('an address that is not followed');
      expect(got.text).not.toContain(SIGNED);
      expect([...storage.seen, ...other.seen]).toEqual([]);
      expect(platform.seen).toHaveLength(1);
      const { row } = await evidenceOf(world, agent, got.auditId);
      expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
      expect(JSON.parse(row.flags!)).toMatchObject({ code: 'redirect_refused', followed: { redirect_status: 302 } });
      expect(row.flags).not.toContain(CANARY);
    });

    test('a second redirect is not followed, to avoid loops', async () => {
      redirect(signed());
      storage.answer = (_, response) => response.writeHead(302, { location: signed() }).end();
      const got = await expectStatus(502, read(entryPoint, '/items/1/download'));
      expect(got.text).toContain('Only one redirect is followed.');
      expect(storage.seen).toHaveLength(1);
      expect(await flagsOf(got)).toMatchObject({ code: 'redirected_again', followed: { host: 'localhost' } });
    });

    test('a 401 of the target does not mark the connection', async () => {
      redirect(signed());
      storage.answer = (_, response) => response.writeHead(401, { 'content-type': 'text/plain' }).end('no');
      expect(await read(entryPoint, '/items/1/download')).toMatchObject({
        status: 401,
        text: 'no',
        followed: 'localhost',
      });
      const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
      expect(connections[0].status).toBe('active');
    });

    test('a credential that the target echoes nevertheless is redacted', async () => {
      redirect(signed());
      storage.answer = (_, response) => {
        response.setHeader('content-type', 'text/plain');
        response.end(`key ${CANARY}.`);
      };
      const got = await read(entryPoint, '/items/1/download');
      expect(got).toMatchObject({ status: 200, text: expect.stringMatching(/^key .+\.$/) });
      expect(got.text).not.toContain(CANARY);
    });

    test('an unreachable target is reported as such, and not as the platform', async () => {
      redirect(signed());
      storage.answer = (request) => request.socket.destroy();
      const got = await expectStatus(502, read(entryPoint, '/items/1/download'));
      expect(got.text).toContain('redirected this read to localhost');
      expect(await flagsOf(got)).toMatchObject({ code: 'connection_lost', followed: { host: 'localhost' } });
    });
  });

  test('an operation with its own base URL is sent there, with the credential', async () => {
    const manifest = {
      base_url: `${platform.url}/v1`,
      scopes: { 'demo:write': ['POST /**'] },
      base_urls: { 'POST /files/**': `${other.url}/uploads/` },
      bodies: { 'POST /files/**': 'bytes' },
    };
    await organisation.platform({ id: 'split', manifest });
    const uploader = await organisation.agent({ rules: ALLOW_ALL, grants: { split: { scopeList: ['demo:write'] } } });
    const call = { platform: 'split', method: 'POST', scope: 'demo:write' };
    const body = { data: 'AQI=', encoding: 'base64', headers: { 'content-type': 'application/zip' } };
    expect((await uploader.act({ ...call, endpoint: '/files/a?name=b', ...body })).status).toBe(200);
    const ask = rawClient(() => uploader);
    const sent = { body: Buffer.from([1, 2]), headers: { 'content-type': 'application/zip' } };
    expect((await ask('POST', '/proxy/split-main/files/a?name=b', sent)).status).toBe(200);
    expect(platform.seen).toEqual([]);
    expect(other.seen).toHaveLength(2);
    for (const seen of other.seen) {
      expect(seen).toMatchObject({ method: 'POST', target: '/uploads/files/a?name=b', body: '\u0001\u0002' });
      expect(seen.headers).toMatchObject({ authorization: `Bearer ${CANARY}`, 'content-type': 'application/zip' });
    }
    platform.answer = undefined;
    expect((await uploader.act({ ...call, endpoint: '/Files/a', data: {} })).status).toBe(200);
    expect((await uploader.act({ ...call, endpoint: '/other', data: {} })).status).toBe(200);
    expect(platform.seen.map(({ target }) => target)).toEqual(['/v1/Files/a', '/v1/other']);
    expect(other.seen).toHaveLength(2);
  });

  test('bytes are returned as base64 by /v1/actions, and unchanged by /proxy', async () => {
    const zip = Buffer.from([0x50, 0x4b, 3, 4, 0xff, 0, 0xfe]);
    redirect(signed());
    storage.answer = (_, response) => response.writeHead(200, { 'content-type': 'application/zip' }).end(zip);
    const call = { platform: 'demo', endpoint: '/items/1/download', method: 'GET', scope: 'demo:read' };
    const { body } = await agent.act(call);
    expect(body).toMatchObject({ data: zip.toString('base64'), _meta: { encoding: 'base64' } });
    const answer = await fetch(`${agent.baseUrl}/proxy/demo-main/items/1/download`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    expect(answer.headers.get('content-type')).toBe('application/zip');
    expect(Buffer.from(await answer.arrayBuffer()).equals(zip)).toBe(true);
  });

  test('a HEAD and a Range are forwarded to the target', async () => {
    redirect(signed());
    const head = ofProxy(await raw('HEAD', '/proxy/demo-main/items/1/download'));
    expect(head).toMatchObject({ status: 200, text: '', followed: 'localhost' });
    expect(storage.seen.map(({ method }) => method)).toEqual(['HEAD']);
    await read('/proxy', '/items/1/download', { range: 'bytes=0-3' });
    expect(storage.seen.at(-1)?.headers.range).toBe('bytes=0-3');
  });

  test('an endless answer of the target is cut: by the size limit, or when its reader disconnects', async () => {
    redirect(signed());
    let closed = 0;
    storage.answer = (_, response) => {
      response.on('close', () => closed++);
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(256 * 1024, 1)));
      };
      response.on('drain', write);
      write();
    };
    const got = await expectStatus(502, read('POST /v1/actions', '/items/1/download'));
    expect(await flagsOf(got)).toMatchObject({ code: 'too_large' });
    const leaving = new AbortController();
    const { headers, body } = await fetch(`${agent.baseUrl}/proxy/demo-main/items/1/download`, {
      headers: { authorization: `Bearer ${agent.token()}` },
      signal: leaving.signal,
    });
    await body?.getReader().read();
    leaving.abort();
    await vi.waitFor(() => expect(closed).toBe(2));
    const id = headers.get('x-svc-audit-id') ?? '';
    await vi.waitFor(async () => expect((await findAuditRow(world.db, organisation.id, id))?.state).toBe('final'));
    expect(await flagsOf({ auditId: id } as Got)).toMatchObject({
      ended: 'client_closed',
      followed: { host: 'localhost', redirect_status: 302 },
    });
  });

  test('the redirect of a held read is followed after approval', async () => {
    redirect(signed());
    const careful = await organisation.agent({
      rules: [{ effect: 'require_approval' }],
      grants: { demo: { scopeList: ['demo:read'] } },
    });
    const call = { platform: 'demo', endpoint: '/items/1/download', method: 'GET', scope: 'demo:read' };
    const id = await careful.hold(call);
    await organisation.approve(id);
    const approval = await careful.get(`/v1/approvals/${id}?wait=10`);
    expect(approval.body).toMatchObject({ status: 'approved', result: { status: 200, data: LINES } });
    const waiting = rawClient(() => careful)('GET', '/proxy/demo-main/items/1/download', {
      headers: { 'x-svc-wait': '20' },
    });
    const [held] = await vi.waitFor(async () => {
      const all = await organisation.pending();
      expect(all).toHaveLength(1);
      return all;
    });
    await organisation.approve(held!.approval_id);
    expect(ofProxy(await waiting)).toMatchObject({ status: 200, text: LINES, followed: 'localhost' });
  });

  test('the signed query is neither recorded nor logged', async () => {
    const stored = await everythingStored(world.environment);
    expect([...stored].filter(([, bytes]) => bytes.includes(SIGNED)).map(([place]) => place)).toEqual([]);
    expect(logged.join('')).toContain('"level":"');
    expect(logged.join('')).not.toContain(SIGNED);
  });
});
