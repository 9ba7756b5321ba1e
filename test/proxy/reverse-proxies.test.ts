/** Headers of a platform's answer for reverse proxies and shared caches, which here are in front of the broker, not of the platform. */
import { beforeAll, describe, expect, test } from 'vitest';
import { onlyWith } from '../sidecar/tls-world.ts';
import type { TestAgent } from '../world/agent.ts';
import { REVERSE_PROXIES, type ReverseProxy, startReverseProxy } from '../world/servers/reverse-proxies.ts';
import { ALLOW_ALL, givenWorld } from '../world/world.ts';

const TOLD = 'what the platform told';
let agent: TestAgent;
const world = givenWorld();
beforeAll(async () => {
  const organisation = await world.organisation();
  const manifest = { base_url: world.upstream.url, scopes: { 'teller:read': ['GET /**'] } };
  await organisation.platform({ id: 'teller', manifest });
  agent = await organisation.agent({ rules: ALLOW_ALL, grants: { teller: { scopeList: ['teller:read'] } } });
});

/** Makes the platform answer with these headers. */
function tell(headers: Record<string, string>): void {
  world.upstream.answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', ...headers });
    response.end(TOLD);
  };
}

describe.each(REVERSE_PROXIES)('$program', (proxy) => {
  const real = onlyWith(proxy.program, proxy.version);
  let proxied: string;
  beforeAll(async () => {
    if (real === test) proxied = await startReverseProxy(proxy, world.running.baseUrl);
  });

  real('does nothing that a platform tells it to', async () => {
    tell({
      'x-accel-redirect': '/health',
      'x-accel-expires': '60',
      'x-accel-limit-rate': '1',
      'x-sendfile': '/etc/hostname',
      'x-envoy-immediate-health-check-fail': 'true',
      'surrogate-control': 'max-age=60',
      'cdn-cache-control': 'max-age=60',
    });
    const answer = await fetch(`${proxied}/proxy/teller-main/a.txt`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    expect(await answer.text()).toBe(TOLD);
    expect(
      [...answer.headers.keys()].filter((name) =>
        /^(x-accel-(?!buffering)|x-sendfile|x-envoy|surrogate|cdn)/.test(name),
      ),
    ).toEqual([]);
  });

  real('passes on what a platform says in many headers', async () => {
    const long = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`x-long-${at}`, 'y'.repeat(1_000)]));
    tell(long);
    const answer = await fetch(`${proxied}/proxy/teller-main/a.txt`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    expect(await answer.text()).toBe(TOLD);
    expect(Object.fromEntries(answer.headers)).toMatchObject(long);
  });

  real.each(['text/event-stream', 'application/x-ndjson', 'text/plain'])(
    'passes on a stream of %s as it arrives',
    async (type) => {
      let goOn = () => {};
      world.upstream.answer = (_request, response) => {
        response.writeHead(200, { 'content-type': type });
        response.write('first\n\n');
        goOn = () => void response.end('second\n\n');
      };
      const answer = await fetch(`${proxied}/proxy/teller-main/events`, {
        headers: { authorization: `Bearer ${agent.token()}` },
      });
      const reader = answer.body!.getReader();
      expect(String(Buffer.from((await reader.read()).value ?? []))).toBe('first\n\n');
      goOn();
      expect(String(Buffer.from((await reader.read()).value ?? []))).toBe('second\n\n');
    },
  );

  // Caddy 2.6 ends such an answer as if it were complete, whatever the server does, as the guide says.
  if (proxy.program !== 'caddy')
    real('passes on that an answer broke off, so that nobody takes it for whole', async () => {
      world.upstream.answer = (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/octet-stream' });
        response.write(Buffer.alloc(300_000, 'x'));
        setTimeout(() => response.socket?.resetAndDestroy(), 300);
      };
      const answer = await fetch(`${proxied}/proxy/teller-main/long`, {
        headers: { authorization: `Bearer ${agent.token()}` },
      });
      expect(answer.status).toBe(200);
      await expect(answer.arrayBuffer()).rejects.toThrow('terminated');
    });
});

describe('nginx with a cache', () => {
  const cached = (nginx: ReverseProxy): ReverseProxy => ({
    ...nginx,
    file: (block, port) =>
      nginx
        .file(block, port)
        .replace(
          'http {',
          'http { proxy_cache_path kept keys_zone=kept:1m; proxy_cache kept; proxy_cache_valid 200 1h;',
        ),
  });
  const [nginx] = REVERSE_PROXIES;
  if (nginx?.program !== 'nginx') throw new Error('the first of the proxies is nginx');

  onlyWith(nginx.program, nginx.version).each([
    ['public, max-age=3600', 'private, max-age=3600'],
    ['max-age=3600, S-MaxAge=60, must-revalidate', 'private, max-age=3600, must-revalidate'],
    ['private="x-a, x-b", max-age="3600"', 'private, max-age="3600"'],
    ['no-cache', 'private, no-cache'],
    ['must-understand, No-Store', 'private, must-understand, No-Store'],
    ['', 'no-store'],
  ])('caches no answer of an agent when the platform sends %j', async (said, passedOn) => {
    tell(said === '' ? {} : { 'cache-control': said });
    const url = `${await startReverseProxy(cached(nginx), world.running.baseUrl)}/proxy/teller-main/a.png`;
    const answer = await fetch(url, { headers: { 'x-svc-authorization': `Bearer ${agent.token()}` } });
    expect(await answer.text()).toBe(TOLD);
    expect(answer.headers.get('cache-control')).toBe(passedOn);
    expect((await fetch(url)).status).toBe(401);
  });
});
