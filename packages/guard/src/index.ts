// What tools that run commands or open files judge their calls with. An entry of its own (`@oxbow/core/permissions`), because
// programs without such tools need not load it.
export {
  analyseCommand,
  commandMatches,
  commandMentions,
  type Judgement,
  type JudgeOptions,
  judgeCommand,
  suggestRules,
} from './check/judge.ts'
export { checkPath, type PathCheck, type PathOptions, type PathReason } from './paths/check-path.ts'
export { commandPatternProblem } from './rules/rule.ts'
export type { AnalyseOptions, Analysis, Construct, Note, Reason, SimpleCommand } from './words/types.ts'
