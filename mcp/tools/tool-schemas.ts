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

/** As tool-schemas.json holds them, because a client that starts the server waits for the list of tools. */
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

/** `input`: what has a default may be left out. Not every client knows that `{}` takes everything. */
const schemaOf = (schema: z.ZodType, io: 'input' | 'output') =>
  z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // Any text names a member anyway, and some clients' models refuse every tool over it.
      delete jsonSchema.propertyNames;
      const { additionalProperties: more } = jsonSchema;
      if (typeof more === 'object' && Object.keys(more).length === 0) jsonSchema.additionalProperties = true;
    },
  });
