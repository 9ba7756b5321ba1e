/** The table of rate limits in docs/agents.md lists every limit of the agents' API with its real value. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isPublic } from '../../broker/http/routes/openapi.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { ROOT } from '../world/checkout.ts';

const COUNTED = {
  agent: 'agent',
  family: 'agent, together with its children',
  address: 'client address',
  site: 'client address, of IPv6 its /48',
};

const page = readFileSync(join(ROOT, 'docs', 'agents.md'), 'utf8');
const section = /^## Rate limits$(.*?)^## /ms.exec(page)?.[1] ?? '';
const rows = [...section.matchAll(/^\| (.+) \| (\S+)( .*)? \| (.+) \|$/gm)].map(
  ([, what = '', number = '', more = '', counted]) => ({
    paths: [...what.matchAll(/`(?:[A-Z]+ )?(\/[^`]+)`/g)].map(([, path = '']) => path),
    isOfStrangers: what.includes('without a token'),
    perMinute: Number(number.replace(',', '')),
    isOfFailures: more.includes('failures'),
    counted,
  }),
);

const isAt = (written: string, path: string): boolean =>
  written.endsWith('*') ? path.startsWith(written.slice(0, -1)) : path === written;

/** The public routes with a limit, except /metrics, which is for the operator. */
const limited = ROUTES.filter((route) => isPublic(route) && route.limit && route.path !== '/metrics');

test.each(limited.map((route) => [`${route.method} ${route.path}`, route] as const))(
  '%s',
  (_name, { path, limit, strangers }) => {
    for (const one of [limit, strangers])
      if (one)
        expect(rows.filter(({ paths }) => paths.some((written) => isAt(written, path)))).toContainEqual(
          expect.objectContaining({
            isOfStrangers: one === strangers,
            perMinute: one.perMinute,
            isOfFailures: 'counts' in one,
            counted: COUNTED[one.per],
          }),
        );
  },
);
