/** Sums of the amounts in the calls of a group: exact, per currency, and only of amounts with a known currency. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { openConsole } from '../world/browser/console.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const MANIFEST = {
  scopes: { 'pay:refund': ['POST /refunds'], 'pay:quote': ['POST /quotes'] },
  sentences: {
    'POST /refunds': 'refund **{amount /amount /currency}**[ of payment {/payment}]',
    'POST /quotes': 'offer **{amount /total/value /total/currency decimal}** and **{amount /fee /currency}**',
  },
};

describeInChromium('sums of equal calls', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const organisation = fresh(() => world.organisation());

  /** Returns the text of each group head, and the sums in it. */
  const shown = async (calls: readonly [scope: string, data: object][]) => {
    await organisation.platform({ id: 'pay', manifest: MANIFEST });
    const policy = await organisation.policy([{ effect: 'require_approval' }]);
    const agent = await organisation.agent({
      name: 'support',
      policy,
      grants: { pay: { scopeList: Object.keys(MANIFEST.scopes) } },
    });
    for (const [scope, data] of calls) {
      const endpoint = scope === 'pay:refund' ? '/refunds' : '/quotes';
      await expectStatus(202, agent.act({ platform: 'pay', endpoint, method: 'POST', scope, data }));
    }
    const page = await openConsole(world, browser, organisation.owner);
    await page.until(`document.querySelector('.group') !== null`);
    return await page.value<{ head: string; sums: string }[]>(
      `[...document.querySelectorAll('.group')].map((one) => ({
          head: one.querySelector('.ask').innerText.replace(/\\s+/g, ' '),
          sums: one.querySelector('.sums')?.innerText ?? '',
        }))`,
    );
  };
  const refund = (amount: unknown, currency?: unknown): [string, object] => [
    'pay:refund',
    { amount, ...(currency !== undefined && { currency }), payment: 'pay_1' },
  ];

  test('24 refunds: the head shows the smallest and largest amount and the total, with the words of their sentence', async () => {
    const calls = Array.from({ length: 24 }, (_, at) => refund(35_000 + at * 35_000, 'EUR'));
    expect(await shown(calls)).toEqual([
      { head: '24 calls support wants to refund … on pay', sums: '350.00–8,400.00 EUR, 105,000.00 EUR in all' },
    ]);
  });

  test('amounts of different currencies are not added, and the minor units of each currency are respected', async () => {
    const calls = [refund(500, 'EUR'), refund(700, 'eur'), refund(500, 'JPY'), refund(500, 'JPY'), refund(1234, 'KWD')];
    expect((await shown(calls))[0]?.sums).toBe(
      '1.234 KWD; 2 × 500 JPY, 1,000 JPY in all; 5.00–7.00 EUR, 12.00 EUR in all',
    );
  });

  test('an amount without a known currency is left out of the sums, and the head says so', async () => {
    const lacking = [refund(500), refund(500, 'XXX'), refund('many', 'EUR')];
    const calls = [refund(500, 'EUR'), refund(700, 'EUR'), ...lacking];
    expect((await shown(calls))[0]?.sums).toBe('5.00–7.00 EUR, 12.00 EUR in all; 3 without an amount that was read');
  });

  test('an amount with a second spelling of its member, or next to another amount, is left out of the sums', async () => {
    const twice = Array.from({ length: 5 }, (): [string, object] => [
      'pay:refund',
      { amount: 500, Amount: 900, currency: 'EUR', payment: 'pay_1' },
    ]);
    const two = Array.from({ length: 5 }, (): [string, object] => [
      'pay:quote',
      { total: { value: 12.5, currency: 'EUR' }, fee: 100, currency: 'EUR' },
    ]);
    const groups = await shown([...twice, ...two]);
    expect(groups.map(({ sums }) => sums)).toEqual(['', '']);
  });
});
