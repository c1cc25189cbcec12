// The small vocabulary of the offline model in English and Chinese.

export const isChinese = (text: string): boolean => /[\u3400-\u9fff]/.test(text)

const stopWords = new Set(
  // Words that every agent is about are not significant in a question either.
  (
    'a agent agents an and any are as at be by can could do does for from get give has have how i if in into is ' +
    'it its list me my of on one or our please return returns session sessions show tell that the their them then this to use used uses using want was we ' +
    'what whats when where which who will with would you your value values current given'
  ).split(' '),
)

/** Chinese words for the words in tool names. */
const lexicon: readonly (readonly [RegExp, string])[] = [
  [/天气|气温|下雨/, 'weather'],
  [/时间|几点|日期|星期几/, 'time'],
  [/计算|算一下|等于|加上|减去|乘以|除以|多少/, 'calculate'],
  [/搜索|搜一下|查找|查询|查一下/, 'search'],
  [/邮件|邮箱/, 'email'],
  [/文件/, 'file'],
  [/读取|读一下|打开/, 'read'],
  [/写入|保存/, 'write'],
  [/订单/, 'order'],
  [/退款/, 'refund'],
  [/翻译/, 'translate'],
  [/发送|发一/, 'send'],
  [/创建|新建/, 'create'],
  [/删除/, 'delete'],
  [/网页|网址/, 'fetch'],
]

/** Synonyms of words in tool names. */
const synonyms: Readonly<Record<string, string>> = {
  calculator: 'calculate',
  calc: 'calculate',
  compute: 'calculate',
  math: 'calculate',
  sum: 'add',
  plus: 'add',
  clock: 'time',
  date: 'time',
  today: 'time',
  temperature: 'weather',
  forecast: 'weather',
  rain: 'weather',
  sunny: 'weather',
  find: 'search',
  lookup: 'search',
  mail: 'email',
  o_clock: 'time',
}

/** The words of a text in base form, without stop words. */
export function wordsOf(text: string): string[] {
  const spread = text.replace(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase()
  const latin = (spread.match(/[a-z]+/g) ?? []).filter((word) => word.length > 1 && !stopWords.has(word)).map(plain)
  return [...latin, ...lexicon.flatMap(([pattern, word]) => (pattern.test(text) ? [word] : []))]
}

function plain(word: string): string {
  const stem = word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
  return synonyms[word] ?? synonyms[stem] ?? stem
}

/** Pairs of Chinese characters, to compare texts without spaces. */
export function pairsOf(text: string): Set<string> {
  const pairs = new Set<string>()
  for (const run of text.match(/[\u3400-\u9fff]{2,}/g) ?? []) {
    for (let i = 0; i + 1 < run.length; i++) pairs.add(run.slice(i, i + 2))
  }
  return pairs
}
