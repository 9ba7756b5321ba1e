/**
 * Asks the registry for known vulnerabilities of what the lockfile names, and for the signatures of what is installed.
 * Exit code 0: nothing to do; 1: something was found; 2: the registry answered neither, so nothing is known. It speaks to the
 * registry, so it is a job of its own in CI and no part of `npm run check`.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { AcceptedList, auditFindings } from './audit-findings.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** What a command of npm prints as JSON; undefined: it printed none. */
function npmJson(...args: string[]): { status: number | null; answer: unknown; stderr: string } {
  const { status, stdout, stderr } = spawnSync('npm', [...args, '--json'], {
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  try {
    return { status, answer: JSON.parse(stdout), stderr };
  } catch {
    return { status, answer: undefined, stderr };
  }
}

/** What npm says of its own failure, on one line. */
const whyNot = ({ answer, stderr }: { answer: unknown; stderr: string }): string =>
  (/"(?:message|summary)":"([^"]+)"/.exec(JSON.stringify(answer) ?? '')?.[1] ?? stderr)
    .trim()
    .replaceAll(/\s+/g, ' ')
    .slice(0, 300);

const { accepted } = AcceptedList.parse(
  JSON.parse(readFileSync(new URL('audit-accepted.json', import.meta.url), 'utf8')),
);

const audit = npmJson('audit');
const findings = auditFindings(audit.answer, accepted, new Date().toISOString().slice(0, 10));
if (findings === undefined) say(`Vulnerabilities: the registry does not answer audits. ${whyNot(audit)}`);
else if (findings.length === 0) say(`Vulnerabilities: none but the ${accepted.length} that are accepted.`);
else for (const finding of findings) say(`Vulnerabilities: ${finding}`);

/** npm answers `{invalid, missing}` once it has the keys of the registry; anything else is no answer about signatures. */
const signatures = npmJson('audit', 'signatures');
const { invalid, missing } = (signatures.answer ?? {}) as {
  invalid?: { name: string; version: string }[];
  missing?: { name: string; version: string }[];
};
const signed = Array.isArray(invalid) && Array.isArray(missing);
if (!signed) say(`Signatures: no answer. ${whyNot(signatures)}`);
else if (invalid.length + missing.length === 0) say('Signatures: all are good.');
else
  for (const { name, version } of [...invalid, ...missing]) say(`Signatures: invalid or missing: ${name}@${version}`);

const wrong = (findings?.length ?? 0) + (signed ? invalid.length + missing.length : 0);
process.exitCode = wrong > 0 ? 1 : findings === undefined ? 2 : 0;
