import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { encodeForm } from '../../broker/egress/credential-search/form.ts';
import { filterAgentHeaders } from '../../broker/egress/request-headers.ts';
import { buildRequest, platformHeaderNames, type RestCall, type RestPlatform } from '../../broker/egress/rest.ts';
import { outboundTo, rawUpstream } from './upstream.ts';

const platform: RestPlatform = { baseUrl: 'https://api.up.test/v1', auth: { type: 'bearer' } };
const call: RestCall = { method: 'GET', endpoint: { path: '/items', query: '' }, headers: {} };
const build = async (p: Partial<RestPlatform>, c: Partial<RestCall> = {}, secret = 'CANARY-7f3a') => {
  const built = await buildRequest({ ...platform, ...p }, { ...call, ...c }, new Secret(secret), 0);
  if (!built.ok) return { error: built.error, detail: built.detail };
  const { url, ...rest } = built.request;
  return { url: url.href, ...rest };
};

describe('placement of the credential', () => {
  it.each([
    [{ type: 'bearer' }, 'a', { authorization: 'Bearer a' }],
    [{ type: 'basic' }, 'ann:pa:ss', { authorization: `Basic ${btoa('ann:pa:ss')}` }],
    [{ type: 'basic' }, 'sk_live_1', { authorization: `Basic ${btoa('sk_live_1:')}` }],
    [{ type: 'header', name: 'X-Api-Key' }, 'a', { 'x-api-key': 'a' }],
    [{ type: 'header', name: 'Authorization', prefix: 'token ' }, 'a', { authorization: 'token a' }],
  ] as const)('%j', async (auth, secret, headers) => {
    expect(await build({ auth }, {}, secret)).toEqual({
      url: 'https://api.up.test/v1/items',
      method: 'GET',
      headers: { 'user-agent': 'agent-broker', ...headers },
    });
  });
  it('in the query, after the agent’s', async () => {
    const auth = { type: 'query', name: 'api_key' } as const;
    expect(await build({ auth }, {}, 'a&b=ü')).toMatchObject({
      url: 'https://api.up.test/v1/items?api_key=a%26b%3D%C3%BC',
    });
    expect(await build({ auth }, { endpoint: { path: '/items', query: 'x=1' } })).toMatchObject({
      url: 'https://api.up.test/v1/items?x=1&api_key=CANARY-7f3a',
    });
    for (const query of ['api_key=1', 'x&API_KEY', 'api%5Fkey=1', 'api_key']) {
      expect(await build({ auth }, { endpoint: { path: '/items', query } }), query).toMatchObject({
        error: 'endpoint_refused',
      });
    }
  });
  it.each([
    ['https://api.up.test/graphql', 'https://api.up.test/graphql'],
    ['https://api.up.test/graphql/', 'https://api.up.test/graphql/'],
    ['https://api.up.test/a/b', 'https://api.up.test/a/b'],
    ['https://api.up.test', 'https://api.up.test/'],
    ['https://api.up.test/', 'https://api.up.test/'],
  ])('with a complete base URL, / is %s itself', async (baseUrl, url) => {
    const endpoint = { path: '/', query: '' };
    expect(await build({ baseUrl, wholeAddress: true }, { method: 'POST', endpoint, body: {} })).toMatchObject({ url });
    const auth = { type: 'query', name: 'key' } as const;
    expect(await build({ baseUrl, wholeAddress: true, auth }, { endpoint }, 'a')).toMatchObject({
      url: `${url}?key=a`,
    });
  });
  it('with a complete base URL, any other endpoint is refused', async () => {
    for (const endpoint of [
      { path: '/x', query: '' },
      { path: '/', query: 'a=1' },
      { path: '', query: '' },
    ])
      expect(await build({ wholeAddress: true }, { endpoint })).toMatchObject({ error: 'endpoint_refused' });
    const endpoint = { path: '/', query: '' };
    expect(await build({ baseUrl: 'https://api.up.test/x?y', wholeAddress: true }, { endpoint })).toMatchObject({
      error: 'endpoint_refused',
    });
    expect(await build({}, { endpoint })).toMatchObject({ url: 'https://api.up.test/v1/' });
  });
  it('PA-05 an endpoint that would change the host is not built', async () => {
    expect(await build({}, { endpoint: { path: '/../admin', query: '' } })).toMatchObject({
      error: 'endpoint_refused',
    });
  });
  it.each(['', 'a\r\nEvil: 1', 'a\n', 'é', 'a ', '\ud800'])(
    'a credential %j that no header can carry is refused without being shown',
    async (secret) => {
      const refused = await build({}, {}, secret);
      expect(refused).toMatchObject({ error: 'credential_malformed' });
      if (secret.length > 2) expect(JSON.stringify(refused)).not.toContain(secret);
    },
  );
});

describe('HD-02 headers', () => {
  it('the platform’s override the agent’s, and the broker’s override both', async () => {
    const headers = { accept: 'a', 'user-agent': 'me', 'x-mine': '1' };
    expect(
      await build(
        { headers: { Accept: 'application/vnd.up+json', Authorization: 'x', 'X-Version': '2' } },
        { headers },
      ),
    ).toMatchObject({
      headers: {
        accept: 'application/vnd.up+json',
        'user-agent': 'me',
        'x-mine': '1',
        'x-version': '2',
        authorization: 'Bearer CANARY-7f3a',
      },
    });
    expect(headers).toEqual({ accept: 'a', 'user-agent': 'me', 'x-mine': '1' });
  });
  it('platformHeaderNames returns what the broker sets and the platform forbids, folded', () => {
    expect([...platformHeaderNames({ auth: { type: 'bearer' }, headers: { Accept: 'x' } })]).toEqual([
      'accept',
      'authorization',
    ]);
    expect([...platformHeaderNames({ auth: { type: 'header', name: 'X-Api-Key' } })]).toEqual(['xapikey']);
    expect([...platformHeaderNames({ auth: { type: 'bearer' }, forbiddenHeaders: ['Act_As', 'x-b'] })]).toEqual([
      'actas',
      'xb',
      'authorization',
    ]);
    expect([...platformHeaderNames({ auth: { type: 'query', name: 'key' } })]).toEqual(['authorization']);
  });
  it('one host, one credential and no dropped header are on the wire', async () => {
    await using upstream = await rawUpstream((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    await using outbound = outboundTo(upstream);
    const auth = { type: 'header', name: 'X-Api-Key' } as const;
    const filtered = filterAgentHeaders(
      {
        Host: 'evil.test',
        AUTHORIZATION: 'mine',
        'x-API-key': 'mine',
        Cookie: 'mine',
        Connection: 'x-api-key',
        'X-Svc-Session': 'mine',
      },
      platformHeaderNames({ auth }),
    );
    if (!filtered.ok) throw new Error(filtered.error);
    const target = { baseUrl: upstream.url('/v1').href, auth };
    const built = await buildRequest(target, { ...call, headers: filtered.headers }, new Secret('CANARY-7f3a'), 0);
    if (!built.ok) throw new Error(built.detail);
    await outbound.send(built.request);
    const lines = upstream.received().trimEnd().split('\r\n');
    expect(lines[0]).toBe('GET /v1/items HTTP/1.1');
    expect(lines.slice(1).sort()).toEqual([
      'accept-encoding: gzip, br',
      'connection: keep-alive',
      `host: ${upstream.origin}`,
      'user-agent: agent-broker',
      'x-api-key: CANARY-7f3a',
    ]);
  });
});

describe('bodies', () => {
  it('JSON by default', async () => {
    expect(await build({}, { method: 'POST', body: { a: [1, 'é', null] } })).toMatchObject({
      headers: { 'content-type': 'application/json' },
      body: '{"a":[1,"é",null]}',
    });
    expect(await build({}, { method: 'DELETE' })).not.toHaveProperty('body');
    expect(await build({}, { method: 'GET', body: {} })).toMatchObject({ error: 'body_refused' });
  });
  it('a form when the manifest says so', async () => {
    expect(await build({ body: 'form' }, { method: 'POST', body: { amount: 5 } })).toMatchObject({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'amount=5',
    });
    expect(await build({ body: 'form' }, { method: 'POST', body: { 'a[b]': 5 } })).toMatchObject({
      error: 'body_refused',
      detail: 'data: "a[b]": a member name in a form must not be empty, and has no brackets or control characters',
    });
  });
});

describe('forms', () => {
  it('are nested with brackets, lists with indices', async () => {
    const body = {
      amount: 1250,
      currency: 'eur',
      metadata: { 'order id': 'a&b=c', deep: { x: true } },
      items: [{ price: 'p1' }, { price: 'p2', tax: [0.5, 1e21] }],
      note: null,
      text: "ü+'\n",
    };
    expect(encodeForm(body)).toEqual({
      ok: true,
      body: [
        'amount=1250',
        'currency=eur',
        'metadata[order%20id]=a%26b%3Dc',
        'metadata[deep][x]=true',
        'items[0][price]=p1',
        'items[1][price]=p2',
        'items[1][tax][0]=0.5',
        'items[1][tax][1]=1e%2B21',
        'note=',
        "text=%C3%BC%2B'%0A",
      ].join('&'),
    });
    expect(encodeForm({})).toEqual({ ok: true, body: '' });
  });
  it('refuse ambiguous content', async () => {
    expect(encodeForm({ a: {} })).toEqual({
      ok: false,
      error: 'a: a form cannot express an empty object; leave it out, or send null to unset it',
    });
    expect(encodeForm({ a: { b: [] } })).toMatchObject({
      ok: false,
      error: expect.stringContaining('a[b]: a form cannot express an empty list'),
    });
    for (const name of ['a[b]', 'a]', '[', '']) expect(encodeForm({ [name]: 1 })).toMatchObject({ ok: false });
    const many = (count: number) => ({ a: Array.from({ length: count }, () => 1) });
    expect(encodeForm(many(1000))).toMatchObject({ ok: true });
    expect(encodeForm(many(1001))).toMatchObject({ ok: false, error: expect.stringContaining('at most 1000 fields') });
  });
  it('different objects never encode to the same form, except null and the empty text (property)', async () => {
    const leaf = fc.oneof(
      fc.string({ minLength: 1 }).filter((text) => text.isWellFormed()),
      fc.integer().map((n) => `n${n}`),
    );
    const name = fc.string({ minLength: 1, maxLength: 3 }).filter((text) => !/^\d+$/.test(text));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.dictionary(name, tie('tree'), { minKeys: 1 }),
        fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
      ),
    }));
    const object = fc.dictionary(name, tree as fc.Arbitrary<string>);
    fc.assert(
      fc.property(object, (body) => {
        const form = encodeForm(body);
        if (!form.ok) return;
        const back: Record<string, unknown> = {};
        for (const pair of form.body.split('&').filter(Boolean)) {
          const [key = '', value = ''] = pair.split('=');
          const path = key.replaceAll(']', '').split('[').map(decodeURIComponent);
          let at = back;
          for (const [i, part] of path.entries()) {
            if (i === path.length - 1)
              Object.defineProperty(at, part, { value: decodeURIComponent(value), enumerable: true });
            else {
              if (!Object.hasOwn(at, part)) {
                const inner = /^\d+$/.test(path[i + 1] ?? '') ? [] : {};
                Object.defineProperty(at, part, { value: inner, enumerable: true });
              }
              at = at[part] as Record<string, unknown>;
            }
          }
        }
        expect(JSON.stringify(back)).toBe(JSON.stringify(body));
      }),
    );
  });
});
