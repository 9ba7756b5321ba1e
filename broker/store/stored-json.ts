/** Parses JSON columns by schema: a row that was altered outside of the broker causes an error, never another interpretation. */
import { z } from 'zod';
import { EFFECTS, type JsonObject, METHODS, type RuleSource } from '../policy/facts.ts';
import { PERIODS } from '../policy/limit.ts';
import { VALUE_KINDS } from '../policy/value-kinds.ts';

/**
 * Parses a JSON column. `what`: names the column in the error.
 *
 * @throws Error with that name, when the column does not match the schema
 */
export function readStored<Value>(schema: z.ZodType<Value>, text: string, what: string): Value {
  let parsed: z.ZodSafeParseResult<Value> | undefined;
  try {
    parsed = schema.safeParse(JSON.parse(text));
  } catch {
    // Not JSON.
  }
  if (!parsed?.success)
    throw new Error(`The stored ${what} cannot be read: was the row altered outside of the broker?`);
  return parsed.data;
}

/** A column that holds a list of texts. */
export const Texts = z.array(z.string());

/** A column that holds `ScopesOn[]` (schema.ts). */
export const ScopesOnPlatforms = z.array(z.object({ platformId: z.string(), scopes: Texts }));

/** A column that holds the public half of an ES256 key. */
export const StoredPublicJwk = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
});

/** A column that holds some JSON object. */
export const StoredObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);

/** Strict: an unknown condition that is ignored would let a rule match more calls. */
const StoredRules = z.array(
  z.strictObject({
    name: z.string().exactOptional(),
    effect: z.enum([...EFFECTS, 'suspend']),
    platforms: Texts.exactOptional(),
    scopes: Texts.exactOptional(),
    methods: z.array(z.enum(METHODS)).exactOptional(),
    endpoints: Texts.exactOptional(),
    when: z.string().exactOptional(),
    mask: z
      .strictObject({ members: Texts.exactOptional(), values: z.array(z.enum(VALUE_KINDS)).exactOptional() })
      .exactOptional(),
    limit: z
      .strictObject({
        most: z.number(),
        per: z.enum(PERIODS),
        of: z.string().exactOptional(),
        together: z.literal(true).exactOptional(),
      })
      .exactOptional(),
    after: z
      .strictObject({
        platforms: Texts.exactOptional(),
        scopes: Texts.exactOptional(),
        methods: z.array(z.enum(METHODS)).exactOptional(),
        endpoints: Texts.exactOptional(),
        when: z.string().exactOptional(),
        within: z.string(),
      })
      .exactOptional(),
    remember: z.boolean().exactOptional(),
    decide_in: Texts.exactOptional(),
    approvers: z.int().exactOptional(),
  }),
);

/** Parses the rules of a version of a policy, or of the guardrails. `what`: names the version in the error. @throws Error */
export const readStoredRules = (text: string, what: string): RuleSource[] => readStored(StoredRules, text, what);
