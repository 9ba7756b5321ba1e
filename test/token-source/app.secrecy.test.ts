/** The App's key and tokens appear nowhere but sealed in the store, and in requests to the platform. */
import { describe, expect, test } from 'vitest';
import type { Answer } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { INSTALLATION } from '../world/servers/app-platform.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { callOf, givenAppWorld, READ, WRITE } from './app-world.ts';

describe.each(ONE_STORE)(`secrets of an App on %s${postgresNote}`, (store) => {
  const app = givenAppWorld(store);
  const { host, world, organisation } = app;

  test('are in no answer, no row, no log at the most verbose level, and not in plain text in the store', async () => {
    const answers: Answer[] = [];
    const see = async (answer: Promise<Answer>) => {
      answers.push(await answer);
      return answers.at(-1)!;
    };
    const agent = await app.agent();
    const elsewhere = await app.agent({ repos: ['acme/web'] });
    const restricted = await app.agent({}, ['issues.read']);
    const [{ id }] = (await see(organisation.ask('GET', '/owner/connections'))).body.connections;
    const calls = async () => {
      await see(agent.act(READ));
      await see(agent.act(WRITE));
      await see(restricted.act(callOf('GET', '/repos/acme/app/issues', 'issues.read')));
    };
    await calls();
    const baseUrl = world.running.baseUrl;
    await see(organisation.ask('POST', `/owner/connections/${id}/test`, {}));
    for (const path of ['/owner/governance', '/owner/platforms', '/owner/connections', '/owner/audit'])
      await see(organisation.ask('GET', path));
    await world.running.stop();
    const broker = spawnBroker({ ...world.environment, PORT: new URL(baseUrl).port, LOG_LEVEL: 'trace' });
    expect(await broker.serve(), broker.output().stderr).toBe(baseUrl);
    try {
      await calls();
      // Runs every possible failure.
      host.issued.clear();
      await calls();
      host.installations.get(INSTALLATION)!.suspended = true;
      await see(elsewhere.act({ ...READ, endpoint: '/repos/acme/web/contents/a' }));
      host.instead = () => ({ status: 500, body: 'no' });
      await calls();
    } finally {
      broker.signal('SIGTERM');
      await broker.ended;
    }
    const secrets = [...host.pem.trim().split('\n').slice(1, -1), ...host.everIssued];
    expect(host.everIssued.size).toBeGreaterThan(2);
    const { stdout, stderr } = broker.output();
    const stored = await everythingStored(world.environment);
    for (const secret of secrets) {
      expect(placesOf(secret, stored)).toEqual([]);
      expect(stdout + stderr).not.toContain(secret);
      for (const { text, headers } of answers) expect(text + JSON.stringify([...headers])).not.toContain(secret);
    }
    // The App's own JWT is valid for ten minutes.
    expect(host.jwts.size).toBeGreaterThan(0);
    for (const jwt of host.jwts) expect(stdout + stderr).not.toContain(jwt);
  });
});
