mod crashes;
mod crowd;
mod proof;
mod replica;
