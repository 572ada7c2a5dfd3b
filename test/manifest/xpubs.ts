/** The account keys of our wallet and of a thief's. */
export const HONEST_XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
export const OTHER_XPUB =
  'xpub6CGkeevPhX8stoXpYRsvnVbAg46svNCu2sXtxZDUqUvt9yVCvNdwBHuSb5j1zvJ5tkLuSeLjrZevGDL2kvYP1fQ5k5AH9aLFpKh2VLptpx3';
