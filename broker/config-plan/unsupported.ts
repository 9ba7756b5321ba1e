/** What a governance file may say already and the broker does not do yet: refused or told, never passed over. */
import type { Checked } from '../config-file/check-document.ts';
import type { Governance } from '../config-file/governance.ts';

export function findUnsupported({ document, manifests }: Governance): Checked {
  const found: Checked = { problems: [], warnings: [] };
  if ((document.caller_issuers ?? []).length > 0)
    found.problems.push({
      path: ['caller_issuers'],
      at: 'key',
      message:
        'is not supported yet: assertions about the person behind a call are not checked. Leave the section out.',
    });
  for (const [id, { per_person: perPerson }] of manifests) {
    const path = ['platforms', id];
    if (perPerson?.enabled)
      found.warnings.push({
        path: [...path, 'per_person'],
        message:
          'is not supported in full yet: nobody can connect, so calls to this platform are answered consent_required.',
      });
  }
  return found;
}
