export { memory } from './memory/index.ts'
export { type PostgresOptions, postgres } from './postgres/index.ts'
export { type SqliteOptions, sqlite } from './sqlite/index.ts'
