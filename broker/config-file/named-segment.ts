/** Warns of segments such as `:id`, the variable segments of other notations, which here match only that text. */

/** Returns the warning for a path, or an operation with one; undefined when there is nothing to warn of. */
export function namedSegmentWarning(path: string): string | undefined {
  const segment = path.split('/').find((one) => one.startsWith(':'));
  return segment === undefined
    ? undefined
    : `"${segment}" matches only this text. Write \`*\` for a variable segment, not \`:name\`.`;
}
