/** The JSON Schema of a governance file, for editors; its descriptions are also used in error messages. */
import { z } from 'zod';
import { GovernanceDocument } from './schema.ts';

/** The part of JSON Schema (draft 7) that `governanceJsonSchema` uses. */
export type JsonSchema = {
  type?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  propertyNames?: JsonSchema;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  [keyword: string]: unknown;
};

/** Returns the schema in draft 7, which YAML extensions of editors support best. */
export function governanceJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(GovernanceDocument, { target: 'draft-7', io: 'input' }) as JsonSchema;
  return { ...schema, title: 'Agent Broker governance file' };
}
