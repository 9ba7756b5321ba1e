/** What is used of `@bufbuild/cel` and of the packages that it computes with. Most of what they ship is test data. */
export type { CelFunc, CelList, CelMap, CelValue } from '@bufbuild/cel';
export {
  CelScalar,
  celEnv,
  celError,
  celFunc,
  celMethod,
  celUint,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  listType,
  mapType,
  objectType,
  parse,
  plan,
} from '@bufbuild/cel';
export { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
export { RE2JS } from '@bufbuild/re2';
