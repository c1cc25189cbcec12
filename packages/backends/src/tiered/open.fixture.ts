import { drop as dropDatabase, missing as noPostgres, open as openPostgres } from '../postgres/open.fixture.ts'
import { drop as dropKeys, missing as noRedis, open as openRedis } from '../redis/open.fixture.ts'
import { tiered } from './index.ts'

export const missing = noPostgres ?? noRedis

export const open = async (directory: string) =>
  tiered({ store: await openPostgres(directory), hot: await openRedis(directory) })

export const drop = (directory: string) => Promise.all([dropDatabase(directory), dropKeys(directory)])
