import type { Kysely, Transaction } from 'kysely';
import type { Schema } from './schema.ts';

/** The database or a transaction: the first parameter of every function in this folder. */
export type Db = Kysely<Schema> | Transaction<Schema>;
