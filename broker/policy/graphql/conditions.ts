/**
 * The members of a GraphQL call that conditions read: `request.graphql`, and `request.body.variables`. The author of a document chooses the names of its
 * variables, and may write values without any; so a rule about `variables.input` could be bypassed by renaming the variable.
 */
import { BREAK, type DocumentNode, visit } from 'graphql/language';
import type { JsonObject } from '../../../json/json-value.ts';
import { argumentsOf } from './arguments.ts';
import { readGraphqlCall } from './call.ts';

/** A root field of the operation, without its alias. `arguments`: wherever they are written (arguments.ts). */
export type GraphqlField = { name: string; arguments: JsonObject };
export type GraphqlAsk = {
  /** `Error`: the document cannot be read. The message contains no values of the call. */
  graphql: { operation: 'query' | 'mutation'; fields: readonly GraphqlField[] } | Error;
  /** The error in place of the body's `variables`, when conditions cannot rely on their names; undefined when they can. */
  variables: Error | undefined;
};

const NOT_READ = 'what the document of the call does cannot be read';
const OTHER_NAMES =
  'the document does not give each argument by a variable of the same name, so its variables do not tell what it does; write `name: $name` for all of them, or ask an owner to write the rule by `request.graphql`';

/** @param body of a call that is checked by its document (`isGraphql`) */
export function graphqlForConditions(body: JsonObject | undefined): GraphqlAsk {
  const read = readGraphqlCall(body);
  if (read.kind !== 'read') return { graphql: new Error(NOT_READ), variables: new Error(NOT_READ) };
  const { operation, roots, definition, variables, document } = read;
  const fields = roots.map((root) => ({
    name: root.name.value,
    arguments: argumentsOf(root, definition, variables),
  }));
  return {
    graphql: { operation, fields },
    variables: isGivenByVariables(document, variables) ? undefined : new Error(OTHER_NAMES),
  };
}

/**
 * Whether every argument of every field is a variable with the argument's name, and no default replaces a variable without a value: then `variables.x` is the
 * value of the argument `x`. Arguments of directives are ignored: they select what is returned, not what is done.
 */
function isGivenByVariables(document: DocumentNode, variables: JsonObject): boolean {
  let areVariables = true;
  const stop = () => {
    areVariables = false;
    return BREAK;
  };
  visit(document, {
    Directive: () => false,
    VariableDefinition: ({ variable, defaultValue }) =>
      defaultValue === undefined || Object.hasOwn(variables, variable.name.value) ? false : stop(),
    Argument: ({ name, value }) => (value.kind === 'Variable' && value.name.value === name.value ? false : stop()),
  });
  return areVariables;
}
