/**
 * Converts the arguments of a GraphQL root field to plain data, wherever they are written: in the document, in `variables`, or as a variable's default. A
 * recipient that is written into the document is checked like any other.
 */
import type { FieldNode, OperationDefinitionNode, ValueNode } from 'graphql/language';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';

/** GraphQL, CoerceArgumentValues(), without the types: a variable without a value is null. */
export function argumentsOf(field: FieldNode, definition: OperationDefinitionNode, variables: JsonObject): JsonObject {
  const known = new Map<string, JsonValue>();
  for (const { variable, defaultValue } of definition.variableDefinitions ?? []) {
    const name = variable.name.value;
    const given = Object.hasOwn(variables, name) ? variables[name] : undefined;
    known.set(name, given ?? (defaultValue === undefined || given === null ? null : plainValue(defaultValue, known)));
  }
  return Object.fromEntries((field.arguments ?? []).map(({ name, value }) => [name.value, plainValue(value, known)]));
}

function plainValue(node: ValueNode, variables: ReadonlyMap<string, JsonValue>): JsonValue {
  switch (node.kind) {
    case 'Variable':
      return variables.get(node.name.value) ?? null;
    case 'IntValue':
    case 'FloatValue':
      return Number(node.value);
    case 'StringValue':
    case 'BooleanValue':
    case 'EnumValue':
      return node.value;
    case 'NullValue':
      return null;
    case 'ListValue':
      return node.values.map((value) => plainValue(value, variables));
    case 'ObjectValue':
      return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, plainValue(value, variables)]));
  }
}
