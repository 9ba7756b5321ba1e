/** The configurations for reverse proxies in docs/operations.md, with the real proxies in front of a broker. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { onlyWith } from '../sidecar/tls-world.ts';
import { readEvents } from '../world/event-stream.ts';
import { remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { REVERSE_PROXIES, startReverseProxy } from '../world/servers/reverse-proxies.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const ABOVE_THE_LIMIT_OF_NGINX = 3 * 1024 * 1024;

const given = shared(() => startGitWorld('sqlite', { TRUSTED_PROXIES: '127.0.0.1' }));
beforeAll(async () => {
  given.host.repository('acme/app');
});

describe.each(REVERSE_PROXIES)('$program', (proxy) => {
  const real = onlyWith(proxy.program, proxy.version);
  let proxied: string;
  beforeAll(async () => {
    if (real === test) proxied = await startReverseProxy(proxy, given.world.running.baseUrl);
  });

  real('lets a push of megabytes through, with a Content-Length and in chunks', async () => {
    const agent = await given.agent();
    const remote = remoteOf(agent, 'acme/app').replace(new URL(agent.baseUrl).host, new URL(proxied).host);
    const folder = join(newFolder(), 'work');
    expect((await runGit(['clone', '-q', remote, folder])).code).toBe(0);
    writeFileSync(join(folder, 'big.bin'), randomBytes(ABOVE_THE_LIMIT_OF_NGINX));
    for (const words of [
      ['add', '-A'],
      ['-c', 'user.name=a', '-c', 'user.email=a@acme.example', 'commit', '-qm', 'big'],
    ])
      expect((await runGit(words, { folder })).code).toBe(0);
    for (const buffer of ['16m', '64k']) {
      const pushed = await runGit(['push', 'origin', `HEAD:refs/heads/agent/${proxy.program}-${buffer}`], {
        folder,
        config: { 'http.postBuffer': buffer },
      });
      expect(pushed.code, pushed.stderr).toBe(0);
    }
  });

  real('passes events on immediately, and not when the answer ends', async () => {
    const { world, organisation } = given;
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const reader = await readEvents(`${proxied}/owner/events`, { authorization: `Bearer ${token}` });
    await reader.until(({ events }) => events.length === 1);
    reader.close();
  });

  real('passes paths on as they were written', async () => {
    const agent = await given.agent();
    const answerAt = async (base: string, path: string) => {
      const { hostname, port } = new URL(base);
      const authorization = `Bearer ${agent.token()}`;
      const { promise, resolve, reject } = Promise.withResolvers<[number | undefined, unknown]>();
      request({ hostname, port, path: `/proxy/codehost-main${path}`, headers: { authorization } })
        .on('response', (answer) =>
          json(answer).then((body) => resolve([answer.statusCode, (body as { message: string }).message]), reject),
        )
        .on('error', reject)
        .end();
      return await promise;
    };
    for (const path of [
      'contents/a%2Fb',
      'labels/a%20b?q=%2F',
      '/labels/x',
      './labels/x',
      'x/../labels/x',
      "labels/a'b(c)*",
    ])
      expect(await answerAt(proxied, `/repos/acme/app/${path}`), path).toEqual(
        await answerAt(given.world.running.baseUrl, `/repos/acme/app/${path}`),
      );
  });
});
