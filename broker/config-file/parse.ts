/** Parses the text of a governance file, and returns either the document or all of its problems. */
import { checkDocument, readManifests } from './check-document.ts';
import { checkReferences, documentConnections } from './check-references.ts';
import type { Governance } from './governance.ts';
import { governanceJsonSchema } from './json-schema.ts';
import { type Problem, placeFindings, type Source } from './problems.ts';
import { readYaml } from './read-yaml.ts';
import { GovernanceDocument } from './schema.ts';
import { shapeFindings } from './shape-findings.ts';

export type Parsed =
  | { ok: true; governance: Governance; warnings: readonly Problem[] }
  | { ok: false; problems: Problem[] };

/**
 * Parses a governance file (YAML or JSON). Names that only the store can resolve (such as a platform, when the document has no
 * section for platforms) are left to `planGovernance`. Never throws.
 *
 * @param file the name of the file in problems
 */
export function parseGovernance(text: string, file: string): Parsed {
  const read = readYaml(text, file);
  return read.ok ? check(read.value, read.source, 'file') : read;
}

/**
 * Checks a document that the program itself created. Its problems have no lines, and the store does not keep its references
 * to secrets. `name`: the document's name in problems.
 */
export function governanceOf(document: unknown, name: string): Parsed {
  return check(document, { file: name, locate: () => undefined }, 'program');
}

function check(value: unknown, source: Source, origin: Governance['origin']): Parsed {
  if (value === null || value === undefined)
    return {
      ok: false,
      problems: placeFindings(source, [{ path: [], message: 'is empty; nothing would be applied.' }]),
    };
  const parsed = GovernanceDocument.safeParse(value);
  if (!parsed.success) {
    const findings = shapeFindings(parsed.error.issues, value, governanceJsonSchema());
    return { ok: false, problems: placeFindings(source, findings) };
  }
  const document = parsed.data;
  const { manifests, problems } = readManifests(document, governanceJsonSchema);
  const alone = checkDocument(document);
  const references = checkReferences(document, {
    platforms: document.platforms && problems.length === 0 ? manifests : undefined,
    connections: documentConnections(document),
    policies: document.policies && new Set(Object.keys(document.policies)),
    // The owner of the first start is not in the file, so whether an owner exists is checked with the store.
    owners: undefined,
  });
  const all = [...problems, ...alone.problems, ...references.problems];
  if (all.length > 0) return { ok: false, problems: placeFindings(source, all) };
  const warnings = placeFindings(source, [...alone.warnings, ...references.warnings]);
  const { keys } = alone;
  return { ok: true, governance: { document, manifests, source, origin, warnings, keys }, warnings };
}
