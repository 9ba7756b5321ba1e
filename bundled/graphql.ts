/** What is used of `graphql`: the parser, a hundredth of the package. */
export type {
  ArgumentNode,
  DirectiveNode,
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  ObjectFieldNode,
  OperationDefinitionNode,
  SelectionSetNode,
  ValueNode,
} from 'graphql/language';
export { parse } from 'graphql/language';
