/** What `npm audit --json` says, against the list of what was looked at and is accepted until a day. */
import { z } from 'zod';

/** `advisory`: as npm names it, `https://github.com/advisories/GHSA-…`. `until`: the last day on which it is accepted, UTC. */
const Accepted = z.strictObject({
  advisory: z.string().regex(/^https:\/\/github\.com\/advisories\/GHSA(-[0-9a-z]{4}){3}$/),
  package: z.string().min(1),
  reason: z.string().min(20),
  until: z.iso.date(),
});
export const AcceptedList = z.strictObject({ accepted: z.array(Accepted) });
export type Accepted = z.infer<typeof Accepted>;

/** `via` names a package where the fault is in a dependency that has an entry of its own. */
const Report = z.object({
  vulnerabilities: z.record(
    z.string(),
    z.object({
      via: z.array(z.union([z.string(), z.object({ url: z.string(), name: z.string(), title: z.string() })])),
    }),
  ),
});

/**
 * What is wrong, a line each, in words; none: everything that npm found is accepted, and every acceptance is still needed.
 * `undefined`: the answer is no report, as when the registry does not answer audits.
 * @param today as `2026-01-31`
 */
export function auditFindings(answer: unknown, accepted: readonly Accepted[], today: string): string[] | undefined {
  const report = Report.safeParse(answer);
  if (!report.success) return undefined;
  const found = new Map<string, string>();
  for (const { via } of Object.values(report.data.vulnerabilities))
    for (const one of via) if (typeof one !== 'string') found.set(`${one.url} ${one.name}`, one.title);
  const keyOf = ({ advisory, package: name }: Accepted) => `${advisory} ${name}`;
  const known = new Map(accepted.map((one) => [keyOf(one), one]));
  return [
    ...[...found].filter(([key]) => !known.has(key)).map(([key, title]) => `new: ${key}: ${title}`),
    ...accepted
      .filter((one) => found.has(keyOf(one)) && one.until < today)
      .map((one) => `accepted until ${one.until} only: ${keyOf(one)}: ${one.reason}`),
    ...accepted
      .filter((one) => !found.has(keyOf(one)))
      .map((one) => `no longer found, take it out of the list: ${keyOf(one)}`),
  ];
}
