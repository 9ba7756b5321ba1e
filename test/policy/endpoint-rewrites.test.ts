import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decide } from '../../broker/policy/decide.ts';
import { parseEndpoint } from '../../broker/policy/endpoint.ts';
import type { Ask, Facts, RuleSource, Verdict } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { sized } from '../world/runner/thorough.ts';
import { anyAsk, guardRules, platform, policyRules, SCOPES, some } from './arbitraries.ts';
import { agent, crmRules, grant, guardrailsOf, NOW, policyOf } from './world.ts';

const RUNS = sized(3_000, 12_000);

const SEVERITY: Record<Verdict['kind'], number> = { allow: 0, hold: 1, deny: 2 };
const severity = (facts: Facts, ask: Ask) => SEVERITY[decide(facts, ask, NOW).kind];

/** Other spellings of a path, as an attacker would try them. */
const rewrite: fc.Arbitrary<(path: string) => string> = fc
  .array(
    fc.record({
      how: some(
        'case',
        'escape',
        'twice',
        'slash',
        'tail',
        'dot',
        'up',
        'params',
        'encoded',
        'query',
        'fragment',
        'backslash',
        'null',
      ),
      at: fc.nat(40),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((steps) => (path) => steps.reduce((text, { how, at }) => spell(text, how, at % text.length), path));

const hex = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
const splice = (text: string, at: number, replaced: number, by: string) =>
  text.slice(0, at) + by + text.slice(at + replaced);
const slashAt = (text: string, at: number) => Math.max(0, text.lastIndexOf('/', at));

function spell(text: string, how: string, at: number): string {
  const character = text[at]!;
  switch (how) {
    case 'case':
      return splice(
        text,
        at,
        1,
        character === character.toUpperCase() ? character.toLowerCase() : character.toUpperCase(),
      );
    case 'escape':
      return splice(text, at, 1, hex(character));
    case 'twice':
      return splice(text, at, 1, hex(character).replace('%', '%25'));
    case 'slash':
      return splice(text, slashAt(text, at), 1, '//');
    case 'tail':
      return `${text}/`;
    case 'dot':
      return splice(text, slashAt(text, at), 1, '/./');
    case 'up':
      return splice(text, slashAt(text, at), 1, '/x/../');
    case 'params':
      return `${text};v=1`;
    case 'encoded':
      return splice(text, slashAt(text, at), 1, '%2F');
    case 'query':
      return `${text}?x=1`;
    case 'fragment':
      return `${text}#x`;
    case 'backslash':
      return splice(text, slashAt(text, at), 1, '\\');
    default:
      return `${text}%00`;
  }
}

test.each([
  ['', crmRules],
  [
    ', also where an escaped slash is taken',
    compilePlatformRules({
      kind: 'rest',
      encoded_slash: true,
      scopes: Object.fromEntries(
        [...crmRules.scopes].map(([scope, operations]) => [scope, operations.map(({ source }) => source)]),
      ),
    }),
  ],
])('no rewrite of an endpoint turns a refusal into a permission, or a hold into an allow%s', (_also, rules) => {
  let tried = 0;
  const unconditional = (rules: RuleSource[]) => rules.map(({ when: _when, ...rule }) => rule);
  fc.assert(
    fc.property(
      policyRules.map(unconditional),
      guardRules.map(unconditional),
      anyAsk,
      some(...SCOPES),
      rewrite,
      (policy, guards, ask, scope, change) => {
        if (ask.call === undefined) return;
        const facts: Facts = {
          agent: agent(),
          platform: { ...platform, rules },
          grants: [grant({ scopes: SCOPES })],
          policy: policyOf(...policy),
          guardrails: guardrailsOf(...guards),
          breakers: [],
        };
        const plain = { platformId: 'crm', scope, call: { ...ask.call, query: '' } };
        const parsed = parseEndpoint(change(plain.call.path), rules);
        if (!parsed.ok || parsed.path === plain.call.path) return;
        tried++;
        const rewritten = { ...plain, call: { ...plain.call, path: parsed.path, query: parsed.query } };
        expect(severity(facts, rewritten), `${plain.call.path} as ${parsed.path}`).toBeGreaterThanOrEqual(
          severity(facts, plain),
        );
      },
    ),
    { numRuns: RUNS },
  );
  expect(tried).toBeGreaterThan(RUNS / 24);
});
