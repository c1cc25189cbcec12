// The routes of approvals and remembered rules.
import type { Engine } from '@oxbow/core'
import type { Route } from '../http/route.ts'
import { decideRoute } from './deciding.ts'
import { approvalList, approvalRoute } from './reading.ts'
import { removeRuleRoute, ruleList } from './rules.ts'

/** Approvals, and the rules that people remember with them. */
export const approvalRoutes = (engine: Engine): Route[] => [
  approvalList(engine),
  approvalRoute(engine),
  decideRoute(engine),
  ruleList(engine),
  removeRuleRoute(engine),
]
