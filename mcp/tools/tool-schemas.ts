/** The JSON Schemas of the tools, from the Zod schemas that check arguments and answers. */
import { z } from 'zod';
import { Structured } from './answer.ts';
import {
  AccessArguments,
  CheckArguments,
  DeleteArguments,
  NoArguments,
  ReadArguments,
  WriteArguments,
} from './arguments.ts';

/** Generated into tool-schemas.json, for a fast first list of tools. */
export const toolSchemas = () => ({
  input: {
    read_platform: schemaOf(ReadArguments, 'input'),
    write_platform: schemaOf(WriteArguments, 'input'),
    delete_platform: schemaOf(DeleteArguments, 'input'),
    check_approval: schemaOf(CheckArguments, 'input'),
    list_permissions: schemaOf(NoArguments, 'input'),
    request_access: schemaOf(AccessArguments, 'input'),
  },
  output: schemaOf(Structured, 'output'),
});

/**
 * `input`: members with a default are optional. Not every client supports `{}` as any value. Without `$schema`, which MCP reads as draft 2020-12 (2025-11-25,
 * JSON Schema Usage): clients whose validator knows only draft 7 cannot compile a schema that names another one, and every keyword here means the same in both.
 */
function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _, ...made } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // The schema allows any string anyway, and some clients' models refuse all tools because of `propertyNames`.
      delete jsonSchema.propertyNames;
      const { additionalProperties: more } = jsonSchema;
      if (typeof more === 'object' && Object.keys(more).length === 0) jsonSchema.additionalProperties = true;
    },
  });
  return made;
}
