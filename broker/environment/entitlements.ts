/** `AGENT_BROKER_ENTITLEMENTS_OFF`: entitlements that are switched off for organisations. */
import { z } from 'zod';
import { listed } from './forms.ts';

export const EntitlementsOff = z
  .string()
  .default('')
  .transform(listed)
  .pipe(
    z.array(
      z
        .string()
        .regex(
          /^(per_person_tokens|repository_constraints|egress)(@[0-9a-f-]{36})?$/,
          'must be per_person_tokens, repository_constraints or egress, with @ and an organisation’s id or without',
        )
        .transform((text) => {
          const [what = '', of] = text.split('@');
          return { what: what as 'per_person_tokens' | 'repository_constraints' | 'egress', of };
        }),
    ),
  )
  .describe(
    'comma-separated entitlements that organisations do not have: per_person_tokens, repository_constraints, egress; with @<organisation id> of one organisation',
  );
/** `of`: the id of the one organisation that lacks the entitlement; undefined: all do. */
export type EntitlementsOff = readonly z.output<typeof EntitlementsOff>[number][];
