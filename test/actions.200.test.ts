import { beforeAll, describe, expect, test } from 'vitest';
import { postgresNote, STORES } from './world/stores.ts';
import { CANARY, type Organisation, startWorld, type World } from './world/world.ts';

describe.each(STORES)(`POST /v1/actions answers 200 on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
  });

  test('a read reaches the platform with the credential, and the agent gets the answer without it', async () => {
    const agent = await organisation.agent();
    world.upstream.seen.length = 0;
    const answer = await agent.act({
      platform: 'demo',
      endpoint: '/items?state=open',
      method: 'GET',
      scope: 'demo:read',
    });
    expect(answer.status).toBe(200);
    expect(answer.body.data).toEqual({ method: 'GET', target: '/v1/items?state=open', body: null });
    expect(answer.body._meta).toMatchObject({ capability: 'actions.execute', upstream_status: 200 });
    expect(answer.body._meta.audit_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(world.upstream.seen[0]!.headers.authorization).toBe(`Bearer ${CANARY}`);
    expect(answer.text).not.toContain(CANARY);
  });
});
