/** Column types used by several tables. */
import type { ColumnType } from 'kysely';

export type Bit = 0 | 1;

export type WithDefaults<Table, Column extends keyof Table> = Omit<Table, Column> & {
  [Name in Column]: ColumnType<Table[Name], Table[Name] | undefined, Table[Name]>;
};
