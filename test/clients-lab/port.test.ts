/** Stripe's client with the lines of docs/unmodified.md, which configure a host and a port. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { stripe } from '../../broker/platforms/builtin/stripe.ts';
import { js, profileOf, run } from '../sidecar/run-world.ts';
import { ROOT } from '../world/checkout.ts';
import { ALLOW_ALL, CANARY, startWorld } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';

describe.skipIf(withoutLab)(`the port of a connection${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  test('Stripe’s client can use it', async () => {
    const world = await startWorld();
    const organisation = await world.organisation();
    await organisation.platform({ id: 'stripe', manifest: { ...stripe, base_url: world.upstream.url } });
    const grants = { stripe: { scopeList: Object.keys(stripe.scopes) } };
    const profile = profileOf(await organisation.agent({ rules: ALLOW_ALL, grants }));
    const page = readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8');
    const [, lines = ''] = /```js\n.*run --port stripe .*\n([^`]+)```/.exec(page) ?? [];
    const ended = await run(profile, [
      ...['--port', 'stripe-main'],
      ...js(`import Stripe from '${pathToFileURL(load.resolve('stripe'))}';
        ${lines.replace('STRIPE_PORT', 'STRIPE_MAIN_PORT')}
        console.log(JSON.stringify(await stripe.customers.create({ name: 'A' })));`),
    ]);
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.stdout)).toMatchObject({ method: 'POST', target: '/v1/customers', body: 'name=A' });
    expect(world.upstream.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
  });
});
