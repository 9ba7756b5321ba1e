/** undici has types for its index only. */
declare module 'undici/lib/dispatcher/pool.js' {
  // biome-ignore lint/style/noDefaultExport: a CommonJS module is the default export of what imports it.
  export { Pool as default } from 'undici';
}
